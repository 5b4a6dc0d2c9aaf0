#pragma once

#include "collectors/table/row.hpp"

/// Traits that rows of several tables have.
namespace gpumeter::nvidia {

// No card exceeds these ranges, so a reading outside must be wrong.
inline constexpr Traits kCelsius{.min = -50, .max = 250};
inline constexpr Traits kMemoryCelsius{.min = -50, .max = 250, .zero_is_unknown = true};
inline constexpr Traits kWatts{.min = 0, .max = 5000};
inline constexpr Traits kHertz{.min = 0, .max = 20e9};
inline constexpr Traits kSize{.min = 1};
inline constexpr Traits kPerformanceStates{.min = 0, .max = 15};  // P0 to P15
inline constexpr Traits kFan{.min = 0, .max = 2};  // "may exceed 100 %" (nvml.h at nvmlDeviceGetFanSpeed)
inline constexpr Traits kLinkGeneration{.min = 1, .max = 8};
inline constexpr Traits kLinkLanes{.min = 1, .max = 32};

// Counters that gpumeter adds up: from the driver's buffer of samples, from rates.
inline constexpr Traits kSampled{.counted_by = "samples"};
inline constexpr Traits kIntegrated{.min = 0, .counted_by = "integrated"};

}  // namespace gpumeter::nvidia
