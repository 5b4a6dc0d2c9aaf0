#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "collectors/api/collector.hpp"
#include "collectors/api/sampling.hpp"

namespace gpumeter {

/// The times at which a lane reads each tier. Each tier has a fixed grid, so that the times do not drift.
/// After a late pass the next grid point follows, not a burst. Pure arithmetic; one thread.
class TierSchedule {
 public:
  /// `stagger` in [0, 1) shifts the grid by that fraction of the interval, so that the lanes of one driver do
  /// not start together.
  TierSchedule(const SamplingIntervals& intervals, Nanoseconds start, double stagger);

  struct Turn {
    Tier tier;
    Nanoseconds at;
  };
  /// Returns the next tier and its time. If several tiers are due, the fastest comes first.
  Turn next(Nanoseconds now) const noexcept;

  bool is_due(Tier tier, Nanoseconds now) const noexcept { return due(tier) <= now; }

  /// Records that the tier was read: its next turn is the first grid point after `now`. If reads failed, the
  /// next turn is kRetryEvery later if that is earlier, so that one failure does not hide a value for a whole
  /// minute. After kRetries such turns the failure counts as lasting, until more reads fail.
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
