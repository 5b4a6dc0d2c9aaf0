#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpumeter::nvidia {

/// The facts of a card from NVML that its peaks depend on; 0 and "" mean unknown.
struct Facts {
  std::string name;        ///< nvmlDeviceGetName
  unsigned device_id = 0;  ///< 16 bits, from PCI: the upper half of nvmlPciInfo_t.pciDeviceId
  int cc_major = 0, cc_minor = 0;
  unsigned cores = 0;  ///< nvmlDeviceGetNumGpuCores
  double max_sm_clock_hertz = 0, max_memory_clock_hertz = 0;
  unsigned bus_width_bits = 0;
};

struct Peak {
  std::string_view dtype;  ///< fp64 fp32 tf32 fp16 bf16 fp8 int8 fp4
  double flops;     ///< dense operations per second (a multiply-add counts as two); never with sparsity
  bool from_table;  ///< from a data sheet; false: by formula, from the card's maximum clock
  friend bool operator==(const Peak&, const Peak&) = default;
};

/// One peak for each data type with a published rate, in the order above. fp32 is the rate of the vector
/// units. The others are rates of the tensor cores where those have the type, accumulating in fp32 (int8: in
/// int32).
std::vector<Peak> peaks_of(const Facts& card);

/// Bytes per second.
std::optional<double> memory_bandwidth_of(const Facts& card) noexcept;

}  // namespace gpumeter::nvidia
