#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.hpp"

namespace gpumeter::benchmark {

// Results of the benchmark of one device. Plain data.

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

/// The time that the tests of one device have. One thread.
class Pace {
 public:
  using Clock = std::chrono::steady_clock;

  /// The time of one test if all have `most`: there are at most 19, and their preparation and verification
  /// need the rest.
  static constexpr Clock::duration share_of(Clock::duration most) noexcept { return most / 28; }
  /// `most` is the time of all tests, `slice` that of one.
  Pace(Clock::duration most, Clock::duration slice) : deadline_(Clock::now() + most), slice_(slice) {}

  /// The time of one test.
  Clock::duration slice() const noexcept { return slice_; }
  bool is_over() const noexcept { return Clock::now() >= deadline_; }

 private:
  Clock::time_point deadline_;
  Clock::duration slice_;
};

/// Seconds of one run.
struct Sample {
  double median = 0;
  double deviation = 0;  ///< median absolute deviation
  int runs = 0;
};

/// All that was measured on one device.
struct Outcome {
  std::vector<Measurement> measurements;
  std::vector<std::string> failures;  ///< wrong results and tests that could not end, as sentences
  std::vector<std::string> notes;     ///< tests that the device lacks, as sentences
  std::vector<Fact> facts;

  /// Adds a test that takes the time of the sample for `amount` operations or bytes.
  void add(Quantity quantity, const std::string& kind, const std::string& backend, double amount,
           const Sample& sample) {
    measurements.push_back({quantity, kind, backend, amount / sample.median,
                            amount * sample.deviation / (sample.median * sample.median), sample.runs});
  }
};

/// The longest time of one launch. A process that waits for the device waits for the launch.
inline constexpr double kLongestLaunchSeconds = 0.1;
inline constexpr int kFewestRuns = 3;

/// Calls `once` until the test's time is over, at least kFewestRuns and at most 200 times; the first call is
/// a warm-up. `once` returns its seconds as the device measured them, or nullopt to give up. Returns nullopt
/// if it gave up or the time of all tests is over.
std::optional<Sample> repeat(const Pace& pace, const std::function<std::optional<double>()>& once);

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

/// The size of a buffer that no cache of the host's processor holds: a quarter above the largest one that the
/// kernel reports in `sysfs` (/sys), and at least 64 MiB.
std::size_t size_above_caches(const std::string& sysfs);

}  // namespace gpumeter::benchmark
