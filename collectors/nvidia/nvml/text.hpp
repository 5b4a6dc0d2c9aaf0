#pragma once

#include <array>
#include <optional>
#include <string>

#include "collectors/nvidia/nvml/caller.hpp"

namespace gpumeter::nvidia {

/// What Function(device, buffer, size) writes; empty where the device does not say. The buffer is larger than
/// any that NVML asks for (NVML_DEVICE_NAME_V2_BUFFER_SIZE is 96).
template <auto Function>
std::string text_of(NvmlCaller& caller) {
  std::array<char, 128> buffer{};
  if (caller.call<Function>(buffer.data(), static_cast<unsigned>(buffer.size() - 1)) != nvml::kSuccess)
    return "";
  return buffer.data();
}

/// The unsigned that Function(device, &value) gives.
template <auto Function>
std::optional<unsigned> number_of(NvmlCaller& caller) {
  unsigned value = 0;
  if (caller.call<Function>(&value) != nvml::kSuccess) return std::nullopt;
  return value;
}

}  // namespace gpumeter::nvidia
