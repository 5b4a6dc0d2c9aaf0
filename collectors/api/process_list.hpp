#pragma once

#include <optional>
#include <vector>

#include "collectors/api/collector.hpp"
#include "collectors/api/sample.hpp"

namespace gpumeter {

/// A process that uses a device, as the device's driver lists it. Each pid stands once, whatever the number
/// of its contexts.
struct DeviceProcess {
  int pid = 0;  ///< in the daemon's pid namespace
  std::optional<double> memory_bytes;
  /// Time in which work of the process was on the device, since the call before: at most the time between
  /// the two. Where two processes are at work at once, the sum may be more than that.
  std::optional<double> busy_seconds;

  bool operator==(const DeviceProcess&) const = default;
};

/// A device whose driver tells who uses it. Beside Device, on the same lane thread.
class ListsProcesses {
 public:
  virtual ~ListsProcesses() = default;

  /// When to ask: after a complete pass of this tier.
  virtual Tier processes_tier() const noexcept = 0;

  /// Those that are on the device now, into an empty list. `ok` with an empty list means that nobody is
  /// there; with any other status nothing is known, and what was known before goes on to hold. May block in
  /// the driver. `pass` is the one that was just made.
  virtual ReadStatus processes(const Pass& pass, std::vector<DeviceProcess>& out) noexcept = 0;
};

}  // namespace gpumeter
