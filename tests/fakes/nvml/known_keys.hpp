#pragma once

#include "tests/fakes/nvml/scenario.hpp"

namespace gpumeter::fake_nvml {

/// Throws std::runtime_error for an unknown key: a typo would otherwise appear as NOT_SUPPORTED.
void check_system_keys(const Facts& system);
void check_device_keys(const Facts& device);

}  // namespace gpumeter::fake_nvml
