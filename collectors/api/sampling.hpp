#pragma once

#include "base/options.hpp"
#include "collectors/api/collector.hpp"

namespace gpumeter {

/// The sampling interval of each tier: `sampling` in the configuration. The floor is 1 s because polling a
/// driver faster was measured to slow its jobs by up to 2 %.
struct SamplingIntervals {
  Nanoseconds fast = std::chrono::seconds(1);
  Nanoseconds normal = std::chrono::seconds(10);
  Nanoseconds slow = std::chrono::seconds(60);
  Nanoseconds floor = std::chrono::seconds(1);

  /// `once` is read again every hour, because a driver may report more values later.
  Nanoseconds of(Tier tier) const noexcept;
  bool operator==(const SamplingIntervals&) const = default;
};
extern const options::Section kSamplingSection;

}  // namespace gpumeter
