#pragma once

#include <string>
#include <vector>

#include "base/clock.hpp"

namespace gpumeter {

/// An event reported by a driver, for the log. A row of its device counts it.
struct DeviceEvent {
  std::string uuid;
  std::string kind;  ///< "xid 79", in the vendor's words; the log limits events of one kind and device
};

/// A collector whose driver reports events; implemented in addition to Collector. The daemon calls it on a
/// separate thread.
class WatchesEvents {
 public:
  virtual ~WatchesEvents() = default;

  /// Waits in the driver for events, for `at_most`, and counts them. Event thread; must not throw.
  virtual std::vector<DeviceEvent> wait_for_events(Nanoseconds at_most) = 0;
};

}  // namespace gpumeter
