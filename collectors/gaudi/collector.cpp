#include "collectors/gaudi/collector.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "base/bounded_calls.hpp"
#include "collectors/sources/class_devices.hpp"
#include "collectors/sources/sysfs.hpp"
#include "collectors/tree/file_index.hpp"

namespace gpumeter::gaudi {
namespace {

constexpr const char* kThread = "find-gaudi";
constexpr Nanoseconds kAtMost = std::chrono::milliseconds(500);

/// The text of a file of the driver, which is in the PCI function's folder or, with older kernels, in that of
/// the node below.
std::string text_of(const tree::FileIndex& index, std::string_view name) {
  const std::optional<std::string> path = index.file("**/" + std::string(name));
  return path ? sysfs::read_text(*path) : std::string();
}

DeviceInfo identify(const ClassDevice& device) {
  const tree::FileIndex index(device.folder);
  const std::string type = text_of(index, "device_type");
  DeviceInfo info;
  info.pci_address = device.function ? pci::to_string(device.function->address) : text_of(index, "pci_addr");
  info.uuid = info.pci_address.empty() ? device.name : info.pci_address;
  info.vendor = "intel";
  info.model = type.empty() ? "Gaudi" : type;
  info.driver = "habanalabs";
  info.driver_version = text_of(index, "driver_ver");
  info.vbios_version = text_of(index, "uboot_ver");
  info.firmware_version = text_of(index, "armcp_ver");
  info.minor = device.node.substr(std::min(device.node.find_first_of("0123456789"), device.node.size()));
  info.vendor_index = text_of(index, "module_id");
  if (device.function) {
    info.numa_node = pci::numa_node(*device.function);
    info.local_cpus = pci::local_cpus(*device.function);
  }
  info.source = device.folder;
  return info;
}

class GaudiCollector final : public Collector {
 public:
  explicit GaudiCollector(const CollectorContext& context)
      : roots_{context.sysfs_root, context.procfs_root, nullptr},
        identify_(kThread, kAtMost, *context.clock, context.hanging, "gaudi") {}

  Result<Discovery> discover() override {
    std::map<std::string, ClassDevice> cards;
    for (ClassDevice& device : devices_of_class(roots_.sysfs, "accel")) {
      if (device.driver.starts_with("habanalabs")) cards.emplace(device.name, std::move(device));
    }
    for (ClassDevice& device : devices_of_class(roots_.sysfs, "habanalabs")) {
      if (!device.node.starts_with("hl_controlD")) cards.emplace(device.name, std::move(device));
    }
    std::vector<std::string> names;
    for (const auto& [name, card] : cards) names.push_back(name);
    auto answers = identify_.ask<DeviceInfo>(
        names, [cards](const std::string& name) { return identify(cards.at(name)); });
    Discovery found;
    for (auto& [name, info] : answers.values) found.devices.push_back(std::move(info));
    for (const std::string& name : answers.silent) {
      found.notes.push_back(name + ": its identity files do not respond; retried");
      found.is_incomplete = true;
    }
    return found;
  }

  std::unique_ptr<Device> device(const DeviceInfo&) override {
    return tree::make_device(gaudi_kind(), roots_);
  }

 private:
  const tree::Roots roots_;
  BoundedCalls identify_;
};

}  // namespace

Result<std::unique_ptr<Collector>> open_gaudi(const CollectorContext& context) {
  std::unique_ptr<Collector> collector = std::make_unique<GaudiCollector>(context);
  return collector;
}

}  // namespace gpumeter::gaudi
