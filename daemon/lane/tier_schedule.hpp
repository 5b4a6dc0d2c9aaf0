#pragma once

#include <array>
#include <cstdint>
#include <optional>

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

  bool is_due(Tier tier, Nanoseconds now) const noexcept { return due(tier) <= now; }

  /// The tier was read: its next turn is the first grid point after `now`. If reads failed, it is kRetryEvery
  /// later if that comes first: a value that fails once must not be missing for a whole minute. After
  /// kRetries such turns the failure is taken for lasting, until more reads fail.
  void done(Tier tier, Nanoseconds now, std::uint64_t failed_reads = 0) noexcept;

  static constexpr Nanoseconds kRetryEvery = std::chrono::seconds(5);
  static constexpr int kRetries = 24;

 private:
  static constexpr std::size_t index(Tier tier) noexcept { return static_cast<std::size_t>(tier); }

  Nanoseconds due(Tier tier) const noexcept;

  struct Retry {
    std::optional<Nanoseconds> at;
    std::uint64_t failed_reads = 0;  // of the last turn
    int made = 0;                    // in a row
  };
  std::array<Nanoseconds, kTiers.size()> interval_{};
  std::array<Nanoseconds, kTiers.size()> due_{};  // on the grid
  std::array<Retry, kTiers.size()> retry_{};
};

}  // namespace gpumeter
