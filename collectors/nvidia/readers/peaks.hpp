#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpumeter::nvidia {

/// A card's facts in NVML, as far as its peaks depend on them; 0 and "" are unknown.
struct Facts {
  std::string name;        ///< nvmlDeviceGetName
  unsigned device_id = 0;  ///< 16 bit, of PCI: the upper half of nvmlPciInfo_t.pciDeviceId
  int cc_major = 0, cc_minor = 0;
  unsigned cores = 0;  ///< nvmlDeviceGetNumGpuCores
  double max_sm_clock_hertz = 0, max_memory_clock_hertz = 0;
  unsigned bus_width_bits = 0;
};

struct Peak {
  std::string_view dtype;  ///< fp64 fp32 tf32 fp16 bf16 fp8 int8 fp4
  double flops;            ///< dense operations per second, a multiply-add being two; never with sparsity
  bool from_table;  ///< of a data sheet; else by formula, from the highest clock that the card may reach
  friend bool operator==(const Peak&, const Peak&) = default;
};

/// One of each data type whose rate is published, in the order above. fp32 is that of the vector units, the
/// others that of the tensor cores where those have the type, accumulating in fp32 (int8: in int32).
std::vector<Peak> peaks_of(const Facts& card);

/// Bytes per second.
std::optional<double> memory_bandwidth_of(const Facts& card) noexcept;

}  // namespace gpumeter::nvidia
