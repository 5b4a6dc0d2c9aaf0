#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bounded_calls.hpp"
#include "collectors/api/collector.hpp"
#include "collectors/api/source_report.hpp"
#include "collectors/sources/pci.hpp"

/// How collectors find their devices and identify them. All of it reads files that wake no device.
namespace gpumeter::files {

/// A device of the kernel that a class of sysfs (drm, accel) or the platform bus lists.
struct ClassDevice {
  std::string folder;                     ///< of the device on its bus, with all links resolved
  std::string name;                       ///< its name on the bus: "0000:03:00.0", "fec00000.v3d"
  std::string driver;                     ///< empty: none is bound
  std::string node;                       ///< of the class: "card0", "accel0"; empty for the platform bus
  std::optional<pci::Function> function;  ///< nullopt: not on the PCI bus

  bool renders = false;  ///< it has a render node, or is an accelerator
};

/// The devices behind class/<name> of sysfs, one per device; connectors ("card0-DP-1") are left out. Reads
/// links and `uevent` only, which no driver serves.
std::vector<ClassDevice> devices_of_class(const std::string& sysfs_root, std::string_view name);

/// The platform devices that are bound to a driver.
std::vector<ClassDevice> platform_devices(const std::string& sysfs_root, std::string_view driver);

/// KEY's value in the device's `uevent`, which for a platform device has the device tree's OF_COMPATIBLE_0.
std::string uevent_value(const ClassDevice& device, std::string_view key);

/// What the kernel knows of a device: address, driver, folder, NUMA node, the processors near it, and for a
/// device of a class the number of its node. The uuid is the address, or the name of a device that is not on
/// the PCI bus.
DeviceInfo described(const pci::Function& function);
DeviceInfo described(const ClassDevice& device);

/// An Error if the machine has no sysfs.
Result<Done> has_sysfs(const std::string& sysfs_root);

/// Time for the identity files of one device.
inline constexpr Nanoseconds kIdentityAtMost = std::chrono::milliseconds(500);

/// Identifies devices, each within a time limit, so that a driver that hangs does not delay the others. A
/// device that was identified before keeps its identity meanwhile, and a text that cannot be read for a
/// moment keeps its value; the device's lane determines whether it can be read. One thread.
class Identifier {
 public:
  /// `thread`: name of the threads that identify. `hanging`: see CollectorContext. `hidden`: why a device may
  /// have no identity now.
  Identifier(const char* thread, const Clock& clock, std::shared_ptr<HangingCalls> hanging,
             std::string_view hidden = "its identity files cannot be read; retried")
      : calls_(thread, kIdentityAtMost, clock, std::move(hanging), "device"), hidden_(hidden) {}

  /// Returns the identity of a device by its name on the bus; nullopt: the driver refuses it for a while.
  /// Runs on another thread and owns all that it touches.
  using Identify = std::function<std::optional<DeviceInfo>(const std::string& name)>;
  using Names = std::vector<std::string>;

  /// Adds the devices to `found`, in that order, and a note for each that cannot be identified. `silent`:
  /// names of devices that are there and cannot be asked at all. Devices that are neither are forgotten.
  void identify(const Names& names, const Names& silent, Identify identify, Discovery& found);

  /// The identity as last read; null: none.
  const DeviceInfo* known(const std::string& name) const;

 private:
  void keep(const std::string& name, std::string_view why, Discovery& found) const;
  bool is_hidden(const std::string& name, const std::optional<DeviceInfo>& info) const;
  const DeviceInfo& completed(const std::string& name, DeviceInfo info);

  BoundedCalls calls_;
  const std::string_view hidden_;
  std::map<std::string, DeviceInfo> known_;
};

/// Finds a vendor's cards on the PCI bus. One thread.
class PciFinder {
 public:
  /// The rules of a vendor. The functions read nothing that wakes a card.
  struct Vendor {
    const char* thread;  ///< name of the threads that read the bus and identify cards
    bool (*is_gpu)(const pci::Function&);
    /// Why the GPU is not read, and what helps; empty: it is read.
    std::string (*note)(const pci::Function&);
    std::string_view hidden;  ///< see Identifier
  };
  PciFinder(std::string sysfs_root, const Vendor& vendor, const Clock& clock,
            const std::shared_ptr<HangingCalls>& hanging);

  /// Identifies one card; `known`: its identity as last read, empty if it is new. As Identifier::Identify.
  using Identify = std::function<std::optional<DeviceInfo>(const pci::Function&, const DeviceInfo& known)>;

  Discovery find(const Identify& identify);

 private:
  const std::string sysfs_root_;
  const Vendor vendor_;
  pci::Scan bus_;
  Identifier cards_;
};

/// The outcome of opening `path`, which may be empty; a file that is missing is `unsupported`. `missing`: why
/// it may be missing.
SourceReport report_of(std::string_view what, const std::string& path, std::string_view missing);

}  // namespace gpumeter::files
