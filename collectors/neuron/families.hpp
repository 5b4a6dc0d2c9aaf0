#pragma once

#include "collectors/api/catalog.hpp"

/// Families that only Neuron devices have. The rules of collectors/api/catalog.hpp hold here too.
namespace gpumeter::neuron::families {

// clang-format off
inline constexpr auto power_utilization = catalog::gauge("gpu_power_utilization_ratio", "ratio", "Mean power of the last minute as a share of the device's maximum.");
inline constexpr auto memory_category_used = catalog::gauge("gpu_memory_category_used_bytes", "bytes", "Device memory in use by category of the driver, in bytes; part of gpu_memory_used_bytes.");
// clang-format on

}  // namespace gpumeter::neuron::families
