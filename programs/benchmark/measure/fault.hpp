#pragma once

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/text.hpp"

namespace gpumeter::benchmark {

/// Wrong results on purpose, so that a test can show that the benchmark finds them: one bit of one element is
/// changed on the device before the result is checked.
struct Faults {
  bool gemm = false;
  bool memory = false;
  bool transfer = false;
};

/// $GPUMETER_BENCHMARK_FAULT: words from gemm, memory and transfer, with commas. Not a flag, because it is of
/// use to tests only.
inline Faults faults_of_environment() noexcept {
  const char* const text = std::getenv("GPUMETER_BENCHMARK_FAULT");
  std::string_view words = text == nullptr ? "" : text;
  Faults faults;
  while (!words.empty()) {
    const std::string_view word = take_until(words, ',');
    faults.gemm = faults.gemm || word == "gemm";
    faults.memory = faults.memory || word == "memory";
    faults.transfer = faults.transfer || word == "transfer";
  }
  return faults;
}

/// The bit: it changes the exponent of an fp32 or of the upper half of an fp64.
inline constexpr std::uint32_t kFaultBit = 0x40000000;

}  // namespace gpumeter::benchmark
