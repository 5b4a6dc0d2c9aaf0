#pragma once

#include <string>
#include <vector>

#include "base/clock.hpp"

namespace gpumeter {

/// Something that a driver told of by itself, for the log; what is counted of it is a row of its device.
struct DeviceEvent {
  std::string uuid;
  std::string kind;  ///< "xid 79", in the vendor's words: the same kind of the same device is said rarely
};

/// A collector whose driver tells of events. Beside Collector; the daemon gives it a thread of its own.
class WatchesEvents {
 public:
  virtual ~WatchesEvents() = default;

  /// Waits in the driver for events, for `at_most`, and counts them. Event thread; must not throw.
  virtual std::vector<DeviceEvent> wait_for_events(Nanoseconds at_most) = 0;
};

}  // namespace gpumeter
