#include "collectors/drm/discovery.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <utility>

#include "collectors/sources/sysfs.hpp"
#include "collectors/tree/paths.hpp"
#include "collectors/tree/text.hpp"

namespace gpumeter::drm_devices {
namespace {

constexpr const char* kThread = "find-drm-device";
constexpr Nanoseconds kAtMost = std::chrono::milliseconds(500);
constexpr Nanoseconds kLibraryAtMost = std::chrono::seconds(3);
constexpr std::string_view kTegraDriver = "gk20a";  // nvgpu's platform driver
// Names of the GPU below class/devfreq on a Jetson, by chip: Orin, Xavier, TX2, Nano.
constexpr std::string_view kTegraNames[] = {"*.gpu", "*.ga10b", "*.gv11b", "*.gp10b", "*.gm20b"};

bool is_tegra_gpu(const ClassDevice& device) {
  if (device.function) return false;  // Thor: the function of a driver that NVML reads
  return std::ranges::any_of(kTegraNames, [&](auto name) { return tree::matches(name, device.name); }) &&
         sysfs::File(device.folder + "/load").status() != ReadStatus::gone;
}

const DrmKind* kind_of(const ClassDevice& device) {
  return drm_devices::kind_of(device.driver, device.renders);
}

std::string model_of(const ClassDevice& device, const DrmKind& kind, const tree::TreePaths& paths) {
  const std::string product(kind.product);
  if (!kind.model_file.empty()) {
    const auto path = paths.resolve(kind.model_file);
    const std::string named = path ? sysfs::read_text(*path) : std::string();
    if (!named.empty()) return named;
  }
  if (device.function) {
    std::array<char, 16> id{};
    std::snprintf(id.data(), id.size(), "%04x:%04x", device.function->vendor, device.function->device);
    return product.empty() ? std::string(id.data()) : product + " " + id.data();
  }
  const std::string compatible = uevent_value(device, "OF_COMPATIBLE_0");
  if (compatible.empty()) return product.empty() ? device.driver : product;
  return product.empty() ? compatible : product + " (" + compatible + ")";
}

std::string text_of(const tree::TreePaths& paths, std::string_view name) {
  const auto path = name.empty() ? std::nullopt : paths.resolve(name);
  return path ? sysfs::read_text(*path) : std::string();
}

DeviceInfo identify(const std::string& sysfs_root, const ClassDevice& device, const DrmKind& kind) {
  const tree::TreePaths paths(sysfs_root, device.folder);
  DeviceInfo info;
  if (device.function) {
    info.pci_address = pci::to_string(device.function->address);
    info.numa_node = pci::numa_node(*device.function);
    info.local_cpus = pci::local_cpus(*device.function);
  }
  info.uuid = device.function ? info.pci_address : device.name;
  info.vendor = kind.vendor;
  info.model = model_of(device, kind, paths);
  info.serial = text_of(paths, kind.serial_file);
  info.firmware_version = text_of(paths, kind.firmware_file);
  info.driver = device.driver;
  info.minor = device.node.substr(std::min(device.node.find_first_of("0123456789"), device.node.size()));
  info.source = device.folder;
  return info;
}

}  // namespace

DrmDiscovery::DrmDiscovery(std::string sysfs_root, NvmlCount nvml, const Clock& clock,
                           const std::shared_ptr<HangingCalls>& hanging)
    : sysfs_root_(std::move(sysfs_root)),
      nvml_(std::move(nvml)),
      identify_(kThread, kAtMost, clock, hanging, "device"),
      library_(kThread, kLibraryAtMost, clock, hanging, "nvml") {}

std::vector<ClassDevice> DrmDiscovery::candidates() const {
  std::vector<ClassDevice> all;
  const auto add = [&](std::vector<ClassDevice> more) {
    for (ClassDevice& device : more) {
      const auto same = [&](const ClassDevice& other) { return other.folder == device.folder; };
      if (std::ranges::none_of(all, same)) all.push_back(std::move(device));
    }
  };
  for (const std::string_view name : {"drm", "accel", "tenstorrent"})
    add(devices_of_class(sysfs_root_, name));
  for (const DrmKind& kind : kinds()) {
    if (kind.driver != "*") add(platform_devices(sysfs_root_, kind.driver));
  }
  for (ClassDevice& device : devices_of_class(sysfs_root_, "devfreq")) {
    if (!is_tegra_gpu(device)) continue;
    device.driver = kTegraDriver;
    device.node.clear();
    add({device});
  }
  return all;
}

Discovery DrmDiscovery::find() {
  std::map<std::string, ClassDevice> found;
  std::vector<std::string> names;
  bool has_tegra = false;
  for (ClassDevice& device : candidates()) {
    const DrmKind* const kind = kind_of(device);
    if (kind == nullptr) continue;
    has_tegra = has_tegra || kind->is_tegra;
    names.push_back(device.name);
    found.emplace(device.name, std::move(device));
  }
  Discovery result;
  const bool leaves_tegra = has_tegra && nvml_reads_tegra();
  if (leaves_tegra) std::erase_if(names, [&](const auto& name) { return kind_of(found.at(name))->is_tegra; });
  auto answers = identify_.ask<DeviceInfo>(names, [found, root = sysfs_root_](const std::string& name) {
    const ClassDevice& device = found.at(name);
    return identify(root, device, *kind_of(device));
  });
  for (auto& [name, info] : answers.values) result.devices.push_back(std::move(info));
  for (const std::string& name : answers.silent) {
    result.notes.push_back(name + ": its identity files do not respond; retried");
    result.is_incomplete = true;
  }
  return result;
}

// NVML also lists the GPUs on the bus.
bool DrmDiscovery::nvml_reads_tegra() {
  const std::function<unsigned(const std::string&)> count = [nvml = nvml_](const std::string&) {
    return nvml();
  };
  const auto answers = library_.ask<unsigned>({"nvml"}, count);
  if (answers.values.empty()) return true;  // it hangs, which the collector "nvidia" reports
  const std::vector<std::string> on_bus = sysfs::list(sysfs_root_ + "/bus/pci/drivers/nvidia");
  const auto functions = std::ranges::count_if(
      on_bus, [](const std::string& name) { return pci::parse_address(name).has_value(); });
  return answers.values.begin()->second > static_cast<unsigned>(functions);
}

}  // namespace gpumeter::drm_devices
