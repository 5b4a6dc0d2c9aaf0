#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/bounded_calls.hpp"
#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "base/result.hpp"
#include "base/scheduler.hpp"
#include "collectors/api/device_status.hpp"
#include "collectors/sources/pci.hpp"
#include "exporter/store/labels.hpp"

namespace gpumeter {

/// What the system has for its GPUs, apart from the bus.
struct Host {
  std::set<std::string> modules;  ///< the loaded modules among those that drive GPUs

  /// The state of NVIDIA's control node. NVML requires it.
  struct Node {
    std::string why;  ///< empty: this process may open it, or the driver is not loaded
    std::string remedy;
  };
  Node nvidia_node;

  /// The virtual machine that uses a function by vfio, by the function's address.
  std::map<std::string, std::string> machines;
};

/// Looks at <sysfs_root>/module and <dev_root>/nvidiactl. Opens nothing, so that it wakes no device.
Host look_at_host(const std::string& sysfs_root, const std::string& dev_root = "/dev");

/// Finds the machines of libvirt and Proxmox by the control groups of their emulators, which only root can
/// make, and the functions that each was started with by the emulator's command line: any user may read both.
/// A device that was plugged into a running machine is in no command line. May hang in a process.
std::map<std::string, std::string> machines_with_devices(const std::string& procfs);

/// The display adapters on the bus that have a GPU's driver, whether a collector reads them or not. Adapters
/// lent to a virtual machine, and consoles without a GPU, are left out.
struct Bus {
  std::vector<std::string> addresses;         ///< in PCI order
  std::map<std::string, unsigned> by_vendor;  ///< for gpumeter_pci_devices; also counts GPUs without a driver
  std::vector<pci::Function> functions;       ///< all display adapters, in PCI order
  Host host;

  /// Adds the next function in PCI order.
  void add(const pci::Function& adapter);
  /// True if a GPU has a driver for virtual machines.
  bool lends() const;
  /// The labels of gpumeter_given_device_info: GPUs that a virtual machine uses.
  std::vector<Labels> given() const;
};

/// The state of a collector, for the devices that it does not read.
struct CollectorTrouble {
  bool is_enabled = true;
  std::string error;  ///< why its discovery fails, with the remedy; empty: it works
};

/// Returns the GPUs on the bus that no collector reads, in PCI order, with the reason and the remedy of each.
/// `collectors` holds every collector of this build, by name. Pure; any thread.
std::vector<UnreadDevice> unread_devices(const Bus& bus, std::span<const DeviceStatus> devices,
                                         const std::map<std::string, CollectorTrouble>& collectors);

/// Returns one line: "0000:0c:00.0 amd 1002:73bf (vfio-pci): why; remedy".
std::string to_string(const UnreadDevice& unread);

/// Scans the PCI bus at the start, every 30 s and on request. The scan is a job of the scheduler. Reading the
/// files of a function may hang in its driver: a function that does not answer hides no other function. It
/// keeps its last result while the bus lists it. Public methods: any thread; start(): the owner's thread.
class BusWatcher : public std::enable_shared_from_this<BusWatcher> {
 public:
  /// Called in the scan.
  struct Reports {
    std::function<void(const Bus&)> seen;                                    ///< after each scan
    std::function<void(const std::string& address, bool answers)> function;  ///< a function hangs, or answers
                                                                             ///< again
  };

  /// `sysfs_root`: "/sys"; `procfs`: "/proc". `clock` must outlive this object.
  BusWatcher(std::string sysfs_root, std::string procfs, const Clock& clock, Reports reports,
             pci::Scan::Read read = pci::read_function);

  /// The scheduler's stop() ends the scans; it must outlive this object's calls.
  void start(Scheduler& scheduler);
  /// Requests a scan as soon as possible.
  void request() { job_.wake(); }
  /// If `wanted` is false, the bus counts as empty and is not read.
  void want(bool wanted);

  /// Returns the result of the last scan; nullopt before the first scan. Also returns nullopt if no scan has
  /// ended for 60 s: the scan hangs, and its previous result is out of date.
  std::optional<Bus> bus() const GPUMETER_EXCLUDES(mutex_);
  bool is_late() const GPUMETER_EXCLUDES(mutex_);

 private:
  Nanoseconds turn();
  bool look();
  std::optional<Bus> scan();
  const std::map<std::string, std::string>& machines();
  void report_silent(const std::vector<std::string>& silent);

  const std::string sysfs_root_;
  const std::string procfs_;
  const Clock& clock_;
  const Reports reports_;

  // Used only by the job.
  pci::Scan scan_;
  std::map<pci::Address, pci::Function> known_;  ///< the display adapters, as of their last answers
  std::set<std::string> silent_;
  BoundedCalls processes_;
  std::map<std::string, std::string> machines_;  ///< as of the last answer

  Wakeable job_;
  std::atomic<bool> is_wanted_ = true;
  mutable Mutex mutex_;
  std::optional<Bus> bus_ GPUMETER_GUARDED_BY(mutex_);
  Nanoseconds seen_at_ GPUMETER_GUARDED_BY(mutex_);  // CLOCK_MONOTONIC; the start before the first scan
};

}  // namespace gpumeter
