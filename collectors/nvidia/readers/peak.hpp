#pragma once

#include "collectors/nvidia/readers/basic.hpp"

/// What the GPU could do at most.
namespace gpumeter::nvidia {

namespace readers {

Handle bind_peak(NvidiaContext& context, const ReadSource& source);
Sample read_peak(NvidiaContext& context, int handle) noexcept;
Handle bind_bandwidth(NvidiaContext& context, const ReadSource& source);
Sample read_bandwidth(NvidiaContext& context, int handle) noexcept;

}  // namespace readers

/// The data types of gpu_peak_flops.
inline constexpr std::string_view kDtypes[] = {"fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8", "fp4"};

/// The peak of kDtypes[dtype], where it is from the table (else the formula).
constexpr NvidiaReader peak(unsigned dtype, bool from_table) noexcept {
  return {readers::bind_peak,
          readers::read_peak,
          {from_table ? "peaks: table" : "peaks: formula", dtype | std::uint64_t{from_table} << 32}};
}

constexpr NvidiaReader peak_bandwidth() noexcept {
  return {readers::bind_bandwidth, readers::read_bandwidth, {"peaks: memory bandwidth"}};
}

}  // namespace gpumeter::nvidia
