#pragma once

#include <array>

#include "collectors/api/collector.hpp"

namespace gpumeter {

/// How often each tier is read (config `sampling`).
struct SamplingIntervals {
  Nanoseconds fast = std::chrono::seconds(1);
  Nanoseconds normal = std::chrono::seconds(10);
  Nanoseconds slow = std::chrono::seconds(60);

  /// `once` is looked at again every hour: what a driver did not know at first it may know later.
  Nanoseconds of(Tier tier) const noexcept;
};

/// When a lane reads which tier: each on a fixed grid, so that cadence does not drift and a late pass is
/// followed by the next grid point, not by a burst. Pure arithmetic; one thread.
class TierSchedule {
 public:
  /// `stagger` in [0, 1) shifts the grid by that part of the interval: lanes of one driver do not start
  /// together.
  TierSchedule(const SamplingIntervals& intervals, Nanoseconds start, double stagger);

  struct Turn {
    Tier tier;
    Nanoseconds at;
  };
  /// What is read next, and when; of several that are due the fastest goes first.
  Turn next(Nanoseconds now) const noexcept;

  bool is_due(Tier tier, Nanoseconds now) const noexcept { return due_[index(tier)] <= now; }

  /// The tier was read: its next turn is the first grid point after `now`.
  void done(Tier tier, Nanoseconds now) noexcept;

 private:
  static constexpr std::size_t index(Tier tier) noexcept { return static_cast<std::size_t>(tier); }

  std::array<Nanoseconds, kTiers.size()> interval_{};
  std::array<Nanoseconds, kTiers.size()> due_{};
};

}  // namespace gpumeter
