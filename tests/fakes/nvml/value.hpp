#pragma once

#include <string>
#include <string_view>

#include "collectors/nvidia/nvml/constants.hpp"

namespace gpumeter::fake_nvml {

namespace nvml = nvidia::nvml;

/// The mantissa has 64 bits on x86-64 and holds every byte counter exactly.
using Number = long double;

/// The value of one quantity at one moment. A scalar keeps its text in addition to its number, so that a
/// serial number keeps its leading zeros.
struct Value {
  unsigned error = nvml::kSuccess;
  Number number = 0;
  bool is_number = false;
  std::string text{};
};

/// "700 W" is 700000 (milliwatts), "81559 MiB" bytes, "hopper" 9, "P2" 2: NVML's units and numbers. Any other
/// scalar has only its text.
Value parse_scalar(const std::string& text);

/// Returns true for a word that has a number in NVML, such as "enabled" or "sw_power_cap".
bool is_word(std::string_view text);

/// "gpu_is_lost" -> 15. Throws std::runtime_error for an unknown name.
unsigned error_of(std::string_view name);

/// 15 -> "gpu_is_lost"; null for an unknown code.
const char* name_of_error(unsigned code);

}  // namespace gpumeter::fake_nvml
