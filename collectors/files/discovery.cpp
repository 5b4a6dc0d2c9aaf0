#include "collectors/files/discovery.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/text.hpp"
#include "collectors/sources/sysfs.hpp"

namespace gpumeter::files {
namespace {

std::optional<ClassDevice> read_device(const std::string& folder) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::canonical(folder, error);
  if (error) return std::nullopt;
  ClassDevice device;
  device.folder = path.string();
  device.name = path.filename().string();
  device.function = pci::read_function(device.folder);
  device.driver = sysfs::link_name(device.folder + "/driver");
  if (device.driver.empty()) device.driver = uevent_value(device, "DRIVER");
  return device;
}

bool has_render_node(const ClassDevice& device) {
  const std::vector<std::string> nodes = sysfs::list(device.folder + "/drm");
  return std::ranges::any_of(nodes, [](const std::string& name) { return name.starts_with("renderD"); });
}

template <class Value>
void keep_if_empty(Value& value, const Value& known) {
  if (value == Value()) value = known;
}

}  // namespace

std::vector<ClassDevice> devices_of_class(const std::string& sysfs_root, std::string_view name) {
  std::vector<ClassDevice> found;
  const std::string folder = sysfs_root + "/class/" + std::string(name);
  for (const std::string& node : sysfs::list(folder)) {
    const bool is_drm = name == "drm";
    if (is_drm && (!node.starts_with("card") || node.find('-') != std::string::npos)) continue;
    std::optional<ClassDevice> device = read_device(folder + "/" + node + "/device");
    const auto same = [&](const ClassDevice& other) { return other.folder == device->folder; };
    if (!device || std::ranges::any_of(found, same)) continue;
    device->node = node;
    device->renders = !is_drm || has_render_node(*device);
    found.push_back(*std::move(device));
  }
  return found;
}

std::vector<ClassDevice> platform_devices(const std::string& sysfs_root, std::string_view driver) {
  std::vector<ClassDevice> found;
  const std::string folder = sysfs_root + "/bus/platform/drivers/" + std::string(driver);
  for (const std::string& name : sysfs::list(folder)) {
    std::error_code error;
    if (name == "module" || !std::filesystem::is_directory(folder + "/" + name, error)) continue;
    std::optional<ClassDevice> device = read_device(folder + "/" + name);
    if (!device) continue;
    device->driver = driver;
    device->renders = true;
    found.push_back(*std::move(device));
  }
  return found;
}

std::string uevent_value(const ClassDevice& device, std::string_view key) {
  const std::string uevent = sysfs::read_text(device.folder + "/uevent");
  std::string_view rest = uevent;
  while (!rest.empty()) {
    std::string_view line = take_until(rest, '\n');
    if (take_until(line, '=') == key) return std::string(line);
  }
  return {};
}

DeviceInfo described(const pci::Function& function) {
  DeviceInfo info;
  info.pci_address = pci::to_string(function.address);
  info.uuid = info.pci_address;
  info.driver = function.driver;
  info.numa_node = pci::numa_node(function);
  info.local_cpus = pci::local_cpus(function);
  info.source = function.path;
  return info;
}

DeviceInfo described(const ClassDevice& device) {
  DeviceInfo info = device.function ? described(*device.function) : DeviceInfo();
  if (info.uuid.empty()) info.uuid = device.name;
  info.driver = device.driver;
  info.minor = device.node.substr(std::min(device.node.find_first_of("0123456789"), device.node.size()));
  info.source = device.folder;
  return info;
}

Result<Done> has_sysfs(const std::string& sysfs_root) {
  std::error_code error;
  if (std::filesystem::is_directory(sysfs_root, error)) return Done{};
  return Error(sysfs_root + ": does not exist; is sysfs mounted?");
}

void Identifier::identify(const Names& names, const Names& silent, Identify identify, Discovery& found) {
  const auto contains = [](const Names& all, const std::string& name) {
    return std::ranges::find(all, name) != all.end();
  };
  std::erase_if(known_, [&](const auto& device) {
    return !contains(names, device.first) && !contains(silent, device.first);
  });
  auto answers = calls_.ask<std::optional<DeviceInfo>>(names, std::move(identify));
  for (const std::string& name : names) {
    const auto answer = answers.values.find(name);
    if (answer == answers.values.end()) {
      keep(name, "its identity files do not respond; retried", found);
    } else if (is_hidden(name, answer->second)) {
      keep(name, hidden_, found);
    } else {
      found.devices.push_back(completed(name, *std::move(answer->second)));
    }
  }
  for (const std::string& name : silent) keep(name, "its PCI files cannot be read; retried", found);
}

// The device's lane determines whether it can be read.
void Identifier::keep(const std::string& name, std::string_view why, Discovery& found) const {
  found.notes.push_back(name + ": " + std::string(why));
  found.is_incomplete = true;
  if (const DeviceInfo* const info = known(name)) found.devices.push_back(*info);
}

const DeviceInfo* Identifier::known(const std::string& name) const {
  const auto found = known_.find(name);
  return found == known_.end() ? nullptr : &found->second;
}

// A device without an id of its own has its address for one, and a busy driver may leave the id empty too.
bool Identifier::is_hidden(const std::string& name, const std::optional<DeviceInfo>& info) const {
  const DeviceInfo* const before = known(name);
  return !info || (before != nullptr && info->uuid == info->pci_address && before->uuid != info->uuid);
}

const DeviceInfo& Identifier::completed(const std::string& name, DeviceInfo info) {
  DeviceInfo& before = known_[name];
  if (before.uuid == info.uuid) {
    keep_if_empty(info.serial, before.serial);
    keep_if_empty(info.driver_version, before.driver_version);
    keep_if_empty(info.vbios_version, before.vbios_version);
    keep_if_empty(info.firmware_version, before.firmware_version);
    keep_if_empty(info.architecture, before.architecture);
    keep_if_empty(info.local_cpus, before.local_cpus);
    keep_if_empty(info.compute_units, before.compute_units);
    keep_if_empty(info.numa_node, before.numa_node);
  }
  return before = std::move(info);
}

PciFinder::PciFinder(std::string sysfs_root, const Vendor& vendor, const Clock& clock,
                     const std::shared_ptr<HangingCalls>& hanging)
    : sysfs_root_(std::move(sysfs_root)),
      vendor_(vendor),
      bus_(vendor.thread, clock, pci::read_function, hanging),
      cards_(vendor.thread, clock, hanging, vendor.hidden) {}

Discovery PciFinder::find(const Identify& identify) {
  const pci::Scan::Found bus = bus_.adapters(sysfs_root_);
  Discovery found;
  std::vector<std::string> names;
  std::map<std::string, std::pair<pci::Function, DeviceInfo>> cards;  // with what is known
  for (const pci::Function& function : bus.adapters) {
    if (!vendor_.is_gpu(function)) continue;
    std::string note = vendor_.note(function);
    if (!note.empty()) {
      found.notes.push_back(std::move(note));
      continue;
    }
    names.push_back(pci::to_string(function.address));
    const DeviceInfo* const known = cards_.known(names.back());
    cards.emplace(names.back(), std::pair(function, known != nullptr ? *known : DeviceInfo()));
  }
  cards_.identify(
      names, bus.silent,
      [cards, identify](const std::string& name) { return std::apply(identify, cards.at(name)); }, found);
  return found;
}

SourceReport report_of(std::string_view what, const std::string& path, std::string_view missing) {
  const ReadStatus opened = path.empty() ? ReadStatus::gone : sysfs::File(path).status();
  const ReadStatus status = opened == ReadStatus::gone ? ReadStatus::unsupported : opened;
  const std::string_view remedy = status == ReadStatus::ok       ? ""
                                  : status == ReadStatus::denied ? "allow gpumeter's user to read it"
                                                                 : missing;
  return {std::string(what), path, status, std::string(remedy)};
}

}  // namespace gpumeter::files
