#pragma once

#include "tests/fakes/nvml/scenario.hpp"

namespace gpumeter::fake_nvml {

/// Throws std::runtime_error for a key that nothing reads: a slip of the pen would else be NOT_SUPPORTED.
void check_system_keys(const Facts& system);
void check_device_keys(const Facts& device);

}  // namespace gpumeter::fake_nvml
