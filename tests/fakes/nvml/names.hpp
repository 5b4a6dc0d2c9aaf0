#pragma once

#include <string>

#include "collectors/nvidia/nvml/abi.hpp"

namespace gpumeter::fake_nvml {

/// "82" and "NVML_FI_DEV_MEMORY_TEMP" are 82. Throws std::runtime_error for what is no field.
unsigned field_id(const std::string& name);

/// "2" and "NVML_GPM_METRIC_SM_UTIL" are 2. Throws std::runtime_error for what is no metric.
unsigned gpm_id(const std::string& name);

/// The type that a field's value has where the scenario names none.
nvidia::nvml::ValueType type_of_field(unsigned id);

}  // namespace gpumeter::fake_nvml
