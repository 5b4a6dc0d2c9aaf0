#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collectors/api/collector.hpp"
#include "collectors/api/sample.hpp"

namespace gpumeter {

/// A process that uses a device, as the device's driver lists it, or a virtual machine that has a part of the
/// device. Each pid is listed once, however many contexts it has.
struct DeviceProcess {
  int pid = 0;  ///< in the daemon's pid namespace; 0: not a process
  std::optional<double> memory_bytes;
  /// Time for which the process's work ran on the device since the last call, at most the time between the
  /// two calls. The sum may exceed that time if two processes run at once.
  std::optional<double> busy_seconds;
  /// The virtual machine's UUID or name, if the driver lists machines (a host of virtual GPUs); a valid label
  /// value. Empty: a process.
  std::string vm{};
  /// Parts of a divided device. `device_seconds`: time at work since the last call, as a part of the whole
  /// device. `held_ratio`: part of the device that is kept for the process. An entry without a pid and
  /// machine has those that no process has.
  std::optional<double> device_seconds{};
  std::optional<double> held_ratio{};

  bool operator==(const DeviceProcess&) const = default;
};

/// A device whose driver lists its users; implemented in addition to Device. Lane thread.
class ListsProcesses {
 public:
  virtual ~ListsProcesses() = default;

  /// The lane lists the processes after each complete pass of this tier, and after a pass of another tier
  /// when a workload has just begun.
  virtual Tier processes_tier() const noexcept = 0;

  /// Adds the processes on the device to an empty list. `ok` with an empty list: no process uses the device.
  /// On any other status the previous list stays in force. May block in the driver. `pass` is the last pass;
  /// its `elapsed` is the time since the last call.
  virtual ReadStatus processes(const Pass& pass, std::vector<DeviceProcess>& out) noexcept = 0;
};

}  // namespace gpumeter
