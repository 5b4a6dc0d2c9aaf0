#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "base/clock.hpp"

namespace gpumeter::workloads {

/// Requests lists of processes before the next one is due, because a workload has just begun: a job of a few
/// seconds would otherwise be missed. Shared by the thread that notices workloads and the lanes. Any thread;
/// never waits.
class ListRequest {
 public:
  /// Times of the lists after the event. A program opens its GPU up to a few seconds after its start.
  static constexpr std::array<Nanoseconds, 3> kAfter = {std::chrono::seconds(0), std::chrono::seconds(1),
                                                        std::chrono::seconds(3)};

  /// A workload began. `at`: CLOCK_MONOTONIC.
  void note(Nanoseconds at) noexcept { at_ = at.count(); }

  /// True if one of the times lies between the last list and now.
  bool is_due(Nanoseconds now, Nanoseconds last_list) const noexcept {
    const Nanoseconds at(at_.load());
    return at != kNone && std::ranges::any_of(kAfter, [&](Nanoseconds after) {
             return last_list < at + after && at + after <= now;
           });
  }

 private:
  static constexpr Nanoseconds kNone{-1};
  std::atomic<std::int64_t> at_ = kNone.count();
};

}  // namespace gpumeter::workloads
