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

/// Something that happens to one simulated device, in time since the collector was opened.
struct Event {
  enum class Kind : std::uint8_t {
    hang,      ///< calls to the driver do not return
    lose,      ///< the device falls off the bus
    overheat,  ///< its temperatures rise over their limits, and it throttles
    throttle,  ///< its power cap holds its clocks down
  };
  Kind kind;
  int device;
  Nanoseconds begin;
  Nanoseconds end;  ///< Nanoseconds::max(): never
};

/// Reads `VERB DEVICE after TIME [for TIME]`: "lose 0 after 30s for 10s". Without `for` it never ends. The
/// verbs are the names of the kinds; devices count from 0 and are `device_count`. The Error names the text
/// and what would be right.
Result<Event> parse_event(std::string_view text, int device_count);

/// The events of one device. Immutable: any thread. Times are since the collector was opened.
class Timeline {
 public:
  Timeline(std::span<const Event> events, int device);

  bool holds(Event::Kind kind, Nanoseconds time) const noexcept;

  /// How many of the kind have begun, and how many are over.
  std::size_t begun(Event::Kind kind, Nanoseconds time) const noexcept;
  std::size_t over(Event::Kind kind, Nanoseconds time) const noexcept;

  /// When the last one of the kind began; nullopt: none yet.
  std::optional<Nanoseconds> last_begin(Event::Kind kind, Nanoseconds time) const noexcept;

  std::span<const Event> events() const noexcept { return events_; }

 private:
  std::vector<Event> events_;
};

}  // namespace gpumeter::simulated
