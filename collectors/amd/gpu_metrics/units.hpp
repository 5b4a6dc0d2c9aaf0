#pragma once

#include "collectors/amd/gpu_metrics/fields.hpp"

namespace gpumeter::amd {

/// Drivers mark a temperature or a voltage that the chip lacks with 0 as well as with all-ones.
constexpr bool zero_is_absent(BlobUnit unit) noexcept {
  return unit == BlobUnit::celsius || unit == BlobUnit::centicelsius || unit == BlobUnit::millivolts;
}

/// Firmware sometimes slightly overshoots 100 % at full load (kernels of 2026 clamp it themselves). A value
/// far above 100 is not a percentage; the row's range rejects it.
constexpr double ratio_of_percent(double percent) noexcept {
  constexpr double kFull = 100;
  constexpr double kOvershoot = 2 * kFull;
  return percent > kFull && percent <= kOvershoot ? 1 : percent / kFull;
}

/// Divides if the factor is below 1: 1e-3 has no exact double, 1e3 has.
constexpr double to_base(double value, BlobUnit unit) noexcept {
  switch (unit) {
    case BlobUnit::percent:
      return ratio_of_percent(value);
    case BlobUnit::centicelsius:
      return value / 1e2;
    case BlobUnit::megahertz:
      return value * 1e6;
    case BlobUnit::milliwatts:
    case BlobUnit::millivolts:
      return value / 1e3;
    case BlobUnit::nanoseconds:
      return value / 1e9;
    case BlobUnit::ticks_of_10_nanoseconds:
      return value / 1e8;
    case BlobUnit::decigigatransfers:
      return value * 1e8;
    case BlobUnit::gigabytes_per_second:
      return value * 1e9;
    case BlobUnit::kibibytes:
      return value * 1024;
    case BlobUnit::energy_units:
      return value / 65536;
    case BlobUnit::none:
    case BlobUnit::uncertain:
    case BlobUnit::celsius:
    case BlobUnit::watts:
    case BlobUnit::rpm:
      return value;
  }
  return value;
}

}  // namespace gpumeter::amd
