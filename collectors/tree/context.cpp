#include "collectors/tree/context.hpp"

#include <filesystem>
#include <system_error>

#include "collectors/sources/sysfs.hpp"
#include "collectors/tree/text.hpp"

namespace gpumeter::tree {
namespace {

/// The digits at the end of a folder's name: "neuron_core12" -> "12".
std::string number_of(const std::string& folder) {
  return folder.substr(folder.find_last_not_of("0123456789") + 1);
}

}  // namespace

Result<Done> TreeContext::open(const DeviceInfo& info) {
  std::error_code error;
  if (!std::filesystem::is_directory(info.source, error)) return Error(info.source + ": does not exist");
  info_ = info;
  paths_ = TreePaths(roots_.sysfs, info.source);
  numbers_.clear();
  texts_.clear();
  power_ = RuntimePower(info.source);
  memory_file_ = HostMemoryFile(roots_.procfs);
  memory_is_fresh_ = false;
  client_counters_ = {};
  client_lists_ = fdinfo::ProcessLists();
  clients_ = fdinfo::DeviceWatch(shape_.has_clients ? roots_.users : nullptr, client_device(info));
  find_slices();
  const std::optional<PowerState> state = power_.read();
  awake_ = !shape_.sleeps || !state || !state->suspended;
  return Done{};
}

void TreeContext::close() noexcept {
  paths_ = TreePaths();
  numbers_.clear();
  texts_.clear();
  power_ = RuntimePower();
  memory_file_ = HostMemoryFile();
  clients_ = {};
}

Readiness TreeContext::begin_pass(const Pass& pass) noexcept {
  now_ = pass.now;
  const bool lost = numbers_.lost();
  numbers_.begin_pass();
  texts_.begin_pass();
  memory_is_fresh_ = false;
  client_counters_.begin_pass(clients_, pass.now);
  const std::optional<PowerState> state = power_.read();
  if (lost || !state) return Readiness::gone;
  awake_ = !shape_.sleeps || !state->suspended;
  return awake_ ? Readiness::awake : Readiness::asleep;
}

void TreeContext::find_slices() {
  slices_.clear();
  slice_folders_.clear();
  if (shape_.slices.empty()) return;
  for (std::string& folder : paths_.index().folders(shape_.slices)) {
    const std::string number = number_of(folder);
    if (number.empty()) continue;
    slices_.push_back({std::string(shape_.slice_kind) + ":" + number, {}, folder});
    slice_folders_.push_back(std::move(folder));
  }
}

std::vector<SeriesSpec> TreeContext::info_series() const {
  return shape_.info_series != nullptr ? shape_.info_series(info_) : std::vector<SeriesSpec>();
}

// The memory in use is unknown, or it is the host's.
ReadStatus TreeContext::processes(const Pass& pass, std::vector<DeviceProcess>& out) noexcept {
  return client_lists_.read(clients_, pass.now, std::nullopt, out);
}

std::optional<int> TreeContext::number_file(std::string_view name) {
  const std::optional<std::string> path = paths_.resolve(name);
  return path ? numbers_.open(*path) : std::nullopt;
}

std::optional<int> TreeContext::text_file(std::string_view name) {
  const std::optional<std::string> path = paths_.resolve(name);
  return path ? texts_.open(*path) : std::nullopt;
}

const HostMemoryFile::Reading& TreeContext::host_memory() noexcept {
  if (!memory_is_fresh_) memory_ = memory_file_.read();
  memory_is_fresh_ = true;
  return memory_;
}

std::string TreeContext::client_device(const DeviceInfo& info) const {
  const std::string own = info.pci_address.empty() ? info.uuid : info.pci_address;
  if (shape_.client_driver.empty()) return own;
  for (const std::string& card : sysfs::list(roots_.sysfs + "/class/drm")) {
    const std::string device = roots_.sysfs + "/class/drm/" + card + "/device";
    if (matches(shape_.client_driver, sysfs::link_name(device + "/driver"))) return sysfs::link_name(device);
  }
  return own;
}

}  // namespace gpumeter::tree
