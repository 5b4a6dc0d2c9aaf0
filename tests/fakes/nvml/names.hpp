#pragma once

#include <string>

#include "collectors/nvidia/nvml/abi.hpp"

namespace gpumeter::fake_nvml {

/// "82" and "NVML_FI_DEV_MEMORY_TEMP" are 82. Throws std::runtime_error for an unknown field.
unsigned field_id(const std::string& name);

/// "2" and "NVML_GPM_METRIC_SM_UTIL" are 2. Throws std::runtime_error for an unknown metric.
unsigned gpm_id(const std::string& name);

/// Returns the type of a field's value if the scenario names none.
nvidia::nvml::ValueType type_of_field(unsigned id);

}  // namespace gpumeter::fake_nvml
