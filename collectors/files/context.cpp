#include "collectors/files/context.hpp"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <system_error>

#include "collectors/files/text.hpp"
#include "collectors/sources/sysfs.hpp"

namespace gpumeter::files {
namespace {

/// The digits at the end of a folder's name: "neuron_core12" -> "12".
std::string number_of(const std::string& folder) {
  return folder.substr(folder.find_last_not_of("0123456789") + 1);
}

}  // namespace

Result<Done> Context::open(const DeviceInfo& info) {
  std::error_code error;
  if (!std::filesystem::is_directory(info.source, error)) return Error(info.source + ": does not exist");
  *this = Context(std::move(roots_), kind_, std::move(attached_));
  info_ = info;
  power_ = RuntimePower(info.source);
  const PowerState state = power_.read().value_or(PowerState());
  awake_ = kind_.sleep == Sleep::ignored || !state.suspended;
  is_bound_asleep_ = !awake_;
  paths_ = Paths(roots_.sysfs, info.source, kind_.paths, awake_);
  if (kind_.sleep == Sleep::allowed) screens_ = Screens(info.source);
  memory_file_ = HostMemoryFile(roots_.procfs);
  if (kind_.scans != Scans::never) {
    clients_ = fdinfo::DeviceWatch(roots_.users, client_device(), kind_.scans == Scans::always || awake_);
  }
  find_slices();
  if (attached_) attached_->open(*this, info_, state);
  return Done{};
}

void Context::close() noexcept {
  if (attached_) attached_->close();
  *this = Context(std::move(roots_), kind_, std::move(attached_));
}

Readiness Context::begin_pass(const Pass& pass) noexcept {
  now_ = pass.now;
  is_after_gap_ = pass.elapsed == Nanoseconds{0};
  const bool lost = numbers_.lost();
  numbers_.begin_pass();
  texts_.begin_pass();
  memory_is_fresh_ = false;
  const std::optional<PowerState> state = power_.read();
  if (lost || !state) return Readiness::gone;
  awake_ = kind_.sleep == Sleep::ignored || !state->suspended;
  client_counters_.begin_pass(clients_, pass.now);
  if (attached_) attached_->begin_pass(*state);
  is_read_ = may_read(pass, *state);
  if (kind_.scans != Scans::always) clients_.turn_on(may_scan(*state));
  return is_read_ ? Readiness::awake : Readiness::asleep;
}

// Only the fast tier checks whether the device is in use; the other tiers use its result.
bool Context::may_read(const Pass& pass, const PowerState& state) noexcept {
  if (kind_.sleep != Sleep::allowed) return awake_;
  const auto is_used = [this] { return (attached_ && attached_->is_used()) || screens_.any_on(); };
  const auto is_busy = [this] { return attached_ && attached_->is_busy(); };
  return sleep_.may_read(pass.now, state, pass.tier == Tier::fast, is_used, is_busy);
}

bool Context::may_scan(const PowerState& state) const noexcept {
  if (kind_.scans == Scans::never || !awake_) return false;
  const bool keeps_awake = kind_.scans == Scans::while_read && state.delay >= fdinfo::DeviceWatch::kEvery;
  return is_read_ || !keeps_awake;
}

void Context::end_binding() {
  const bool lacks_numbers = numbers_.note_unanswered();
  const bool lacks_texts = texts_.note_unanswered();
  is_unread_ = attached_ && attached_->is_unread();
  is_provisional_ =
      is_bound_asleep_ || lacks_numbers || lacks_texts || is_unread_ || !paths_.unreadable().empty();
  look_again_at_ = {};
}

// Many devices have a file that never returns a value, so the look must be cheap: it reads only what was
// missing.
bool Context::has_more(Nanoseconds now) noexcept try {
  constexpr auto kLookEvery = std::chrono::seconds(4);
  if (!awake_) return false;
  if (attached_ && attached_->has_changed()) return true;
  if (!is_provisional_) return false;
  if (is_bound_asleep_) return true;
  if (look_again_at_ == Nanoseconds{0}) look_again_at_ = now + kLookEvery;
  if (now < look_again_at_) return false;
  look_again_at_ = now + kLookEvery;
  if (is_unread_ && !attached_->is_unread()) return true;
  if (numbers_.answers_now() || texts_.answers_now()) return true;
  return std::ranges::any_of(paths_.unreadable(),
                             [](const std::string& path) { return sysfs::probe(path) == ReadStatus::ok; });
} catch (const std::exception&) {  // out of memory
  return false;
}

void Context::find_slices() {
  if (kind_.slices.empty()) return;
  for (std::string& folder : paths_.folders(kind_.slices)) {
    const std::string number = number_of(folder);
    if (number.empty()) continue;
    slices_.push_back({std::string(kind_.slice_kind) + ":" + number, {}, folder});
    slice_folders_.push_back(std::move(folder));
  }
}

void Context::turn_to(std::size_t slice) noexcept {
  slice_ = slice;
  paths_.turn_to(slice < slice_folders_.size() ? &slice_folders_[slice] : nullptr);
}

std::vector<SeriesSpec> Context::info_series() const {
  return kind_.info_series != nullptr ? kind_.info_series(info_) : std::vector<SeriesSpec>();
}

ReadStatus Context::processes(const Pass& pass, std::vector<DeviceProcess>& out) noexcept {
  const bool is_open = attached_ && !info_.source.empty();
  const ReadStatus own = is_open ? attached_->processes(pass, out) : ReadStatus::unsupported;
  const std::optional<double> used = is_open ? attached_->memory_in_use() : std::nullopt;
  const ReadStatus clients = client_lists_.read(clients_, pass.now, used, out);
  if (own == ReadStatus::ok || clients == ReadStatus::ok) return ReadStatus::ok;
  return own == ReadStatus::unsupported ? clients : own;
}

std::optional<int> Context::number_file(std::string_view name) {
  const std::optional<std::string> path = paths_.resolve(name);
  return path ? numbers_.open(*path) : std::nullopt;
}

std::optional<int> Context::constant_file(std::string_view name) {
  const std::optional<std::string> path = paths_.resolve(name);
  return path ? numbers_.open_constant(*path) : std::nullopt;
}

std::optional<int> Context::text_file(std::string_view name) {
  const std::optional<std::string> path = paths_.resolve(name);
  return path ? texts_.open(*path) : std::nullopt;
}

const HostMemoryFile::Reading& Context::host_memory() noexcept {
  if (!std::exchange(memory_is_fresh_, true)) memory_ = memory_file_.read();
  return memory_;
}

std::string Context::client_device() const {
  const std::string own = info_.pci_address.empty() ? info_.uuid : info_.pci_address;
  if (kind_.client_driver.empty()) return own;
  for (const std::string& card : sysfs::list(roots_.sysfs + "/class/drm")) {
    const std::string device = roots_.sysfs + "/class/drm/" + card + "/device";
    if (matches(kind_.client_driver, sysfs::link_name(device + "/driver"))) return sysfs::link_name(device);
  }
  return own;
}

}  // namespace gpumeter::files
