#include "daemon/bus/unread.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>

namespace gpumeter {
namespace {

/// The vendors whose GPUs are reported. A vendor's collector has the vendor's name.
struct Vendor {
  std::string_view name;
  std::string_view module;  ///< the kernel module that makes its GPUs readable
};
constexpr Vendor kVendors[] = {{"nvidia", "nvidia"}, {"amd", "amdgpu"}, {"intel", "i915"}};

struct Diagnosis {
  std::string why;
  std::string remedy;
};

std::string pci_id(const pci::Function& function) {
  std::array<char, 12> text{};
  std::snprintf(text.data(), text.size(), "%04x:%04x", function.vendor, function.device);
  return text.data();
}

bool is_readable_by(const Vendor& vendor, std::string_view driver) {
  return driver == vendor.module || (driver == "radeon" && vendor.name == "amd") ||
         (driver == "xe" && vendor.name == "intel");
}

bool is_for_machines(std::string_view driver) {
  return driver.starts_with("vfio") || driver == "pci-stub" || driver == "xen-pciback";
}

Diagnosis without_driver(const pci::Function& function, const Vendor& vendor, const Host& host) {
  const std::string module(vendor.module);
  if (!host.modules.contains(module)) {
    return {"no driver is bound to it: the kernel module " + module + " is not loaded",
            "modprobe " + module + "; if there is no such module, install the driver"};
  }
  return {"no driver is bound to it, although the kernel module " + module + " is loaded",
          "see dmesg for the reason; then echo " + pci::to_string(function.address) +
              " > /sys/bus/pci/drivers/" + module + "/bind"};
}

Diagnosis with_other_driver(const pci::Function& function, const Vendor& vendor) {
  const std::string module(vendor.module);
  const std::string why = "it is bound to " + function.driver;
  if (is_for_machines(function.driver)) {
    return {why + ", for a virtual machine",
            "none if a virtual machine uses it; otherwise bind it to " + module};
  }
  return {why + ", which the collector " + std::string(vendor.name) + " does not read",
          "bind it to " + module + " instead; install that driver if necessary"};
}

Diagnosis diagnose(const pci::Function& function, const Vendor& vendor, const Host& host,
                   const CollectorTrouble& collector) {
  const std::string name(vendor.name);
  if (!collector.is_enabled) {
    return {"the collector " + name + " is disabled",
            "set collectors." + name + ".enabled: true, or start with --collector." + name};
  }
  if (function.driver.empty()) return without_driver(function, vendor, host);
  if (!is_readable_by(vendor, function.driver)) return with_other_driver(function, vendor);
  if (vendor.name == "nvidia" && !host.nvidia_node.why.empty()) {
    return {host.nvidia_node.why, host.nvidia_node.remedy};
  }
  if (!collector.error.empty()) return {"its collector does not work: " + collector.error, "see the reason"};
  return {"its driver does not offer it", "see the log of gpumeter, and dmesg"};
}

/// A device of an earlier run that is missing is not read, even if the bus shows its function again.
bool is_read(const pci::Function& function, std::span<const DeviceStatus> devices) {
  const std::string address = pci::to_string(function.address);
  return std::ranges::any_of(devices, [&](const DeviceStatus& device) {
    return device.pci_address == address && device.state != kMissing;
  });
}

}  // namespace

std::vector<UnreadDevice> unread_devices(const Bus& bus, std::span<const DeviceStatus> devices,
                                         const std::map<std::string, CollectorTrouble>& collectors) {
  std::vector<UnreadDevice> unread;
  for (const pci::Function& function : bus.functions) {
    const auto* const vendor = std::ranges::find(kVendors, pci::vendor_word(function.vendor), &Vendor::name);
    if (vendor == std::end(kVendors) || is_read(function, devices)) continue;
    const auto collector = collectors.find(std::string(vendor->name));
    if (collector == collectors.end()) continue;
    const Diagnosis found = diagnose(function, *vendor, bus.host, collector->second);
    unread.push_back({pci::to_string(function.address), std::string(vendor->name), pci_id(function),
                      function.driver, std::string(vendor->module), found.why, found.remedy});
  }
  return unread;
}

std::string to_string(const UnreadDevice& unread) {
  const std::string driver = unread.driver.empty() ? "" : " (" + unread.driver + ")";
  const std::string remedy = unread.remedy == "none" ? "" : "; " + unread.remedy;
  return unread.pci_address + " " + unread.vendor + " " + unread.pci_id + driver + ": " + unread.why + remedy;
}

}  // namespace gpumeter
