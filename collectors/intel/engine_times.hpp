#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>

#include "base/clock.hpp"
#include "collectors/api/drm_use.hpp"
#include "collectors/api/sample.hpp"

namespace gpumeter::intel {

/// The busy time of a card's engines, by its events. Counts from any start; never falls.
struct EngineTimes {
  EngineSeconds seconds{};  ///< by class, in seconds of one engine of the class
  double busiest = 0;       ///< of the busiest engine
  Nanoseconds at{0};        ///< the time that the counts cover
  ReadStatus status = ReadStatus::unsupported;
};

/// A row's place in EngineTimes: a class, or the busiest engine.
inline constexpr std::size_t kBusiest = kEngineClassCount;

inline std::optional<double> seconds_of(const EngineTimes& times, std::size_t place) noexcept {
  return place == kBusiest ? std::optional(times.busiest) : times.seconds[place];
}

/// The busy time over observed time, for Settled.
struct BusyCount {
  std::optional<double> last;
  double total = 0;

  void restart() noexcept { last.reset(); }
  double advance(double now) noexcept {
    if (last) total += std::max(0.0, now - *last);
    last = now;
    return total;
  }
};

/// The share of time in which an engine was busy, between the last two readings.
class BusyShare {
 public:
  /// `unsupported` until there are two readings.
  Sample advance(double seconds, Nanoseconds at) noexcept {
    if (!last_at_ || at < *last_at_) {
      last_at_ = at;
      last_ = seconds;
      return share_ = Sample::miss(ReadStatus::unsupported);
    }
    if (at == *last_at_) return share_;
    const double share = (seconds - last_) / to_seconds(at - *last_at_);
    last_at_ = at;
    last_ = seconds;
    return share_ = Sample::of(std::clamp(share, 0.0, 1.0));
  }

 private:
  std::optional<Nanoseconds> last_at_;
  double last_ = 0;
  Sample share_ = Sample::miss(ReadStatus::unsupported);
};

}  // namespace gpumeter::intel
