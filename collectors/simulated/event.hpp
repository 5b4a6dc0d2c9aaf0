#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"

namespace gpumeter::simulated {

/// An event of one simulated device. Times are relative to the opening of the collector.
struct Event {
  enum class Kind : std::uint8_t {
    hang,      ///< calls to the driver do not return
    lose,      ///< the device falls off the bus
    overheat,  ///< temperatures rise over their limits, and the device throttles
    throttle,  ///< the power cap lowers the clocks
  };
  Kind kind;
  int device;
  Nanoseconds begin;
  Nanoseconds end;  ///< Nanoseconds::max(): the event never ends
};

/// Parses `VERB DEVICE after TIME [for TIME]`: "lose 0 after 30s for 10s". Without `for` the event never
/// ends. The verbs are the names of the kinds. Devices count from 0 to `device_count` - 1. The Error names
/// the text and the correct form.
Result<Event> parse_event(std::string_view text, int device_count);

/// The events of one device. Immutable, any thread. Times are relative to the opening of the collector.
class Timeline {
 public:
  Timeline(std::span<const Event> events, int device);

  bool holds(Event::Kind kind, Nanoseconds time) const noexcept;

  /// How many events of the kind have begun (begun()) or ended (over()).
  std::size_t begun(Event::Kind kind, Nanoseconds time) const noexcept;
  std::size_t over(Event::Kind kind, Nanoseconds time) const noexcept;

  /// The time at which the last event of the kind began; nullopt if none has begun.
  std::optional<Nanoseconds> last_begin(Event::Kind kind, Nanoseconds time) const noexcept;

  std::span<const Event> events() const noexcept { return events_; }

 private:
  std::vector<Event> events_;
};

}  // namespace gpumeter::simulated
