#include "collectors/sources/class_devices.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/text.hpp"
#include "collectors/sources/sysfs.hpp"

namespace gpumeter {
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

}  // namespace gpumeter
