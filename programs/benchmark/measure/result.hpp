#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/enum_names.hpp"

/// Results of the benchmark of one device. Plain data.
namespace gpumeter::benchmark {

enum class Quantity : std::uint8_t {
  flops,             ///< operations per second; the kind is the data type of the factors
  memory_bandwidth,  ///< bytes per second, read and written bytes added; the kind is the operation
  transfer,          ///< bytes per second; the kind is the direction
};
inline constexpr EnumNames<Quantity, 3> kQuantityNames{{
    {Quantity::flops, "flops"},
    {Quantity::memory_bandwidth, "memory_bandwidth"},
    {Quantity::transfer, "transfer"},
}};

/// The median over the runs of one test.
struct Measurement {
  Quantity quantity = Quantity::flops;
  std::string kind;      ///< fp32, triad, host_to_device
  std::string backend;   ///< opencl, cublas, cublaslt, rocblas, hipblaslt
  double value = 0;      ///< in base units per second
  double deviation = 0;  ///< median absolute deviation, same unit
  int runs = 0;

  bool operator==(const Measurement&) const = default;
};

/// A fact that a history compares: "driver", "cublas", "opencl".
struct Fact {
  std::string name;
  std::string value;

  bool operator==(const Fact&) const = default;
};

/// All that was measured on one device.
struct Outcome {
  std::vector<Measurement> measurements;
  std::vector<std::string> failures;  ///< wrong results and tests that could not end, as sentences
  std::vector<std::string> notes;     ///< tests that the device lacks, as sentences
  std::vector<Fact> facts;
};

}  // namespace gpumeter::benchmark
