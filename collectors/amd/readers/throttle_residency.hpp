#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "collectors/amd/gpu_metrics/blob.hpp"

namespace gpumeter::amd {

/// Time under throttling as MI300 and later count it (gpu_metrics 1.6 on). In each of its cycles the firmware
/// adds 1 to accumulation_counter, and 1 to each residency that is active in it. The throttled share of the
/// time between two reads, by the firmware's clock, is
///
///   growth of the residency / growth of accumulation_counter
///
/// AMD's tools show the same share as "violation". With several residencies, the one with the largest growth
/// counts. Their overlap is unknown, so this is the minimum during which any of them was active. One thread.
class ThrottleResidency {
 public:
  static constexpr std::size_t kMaxFields = 3;
  using Fields = std::array<std::optional<std::size_t>, kMaxFields>;

  ThrottleResidency() = default;
  explicit ThrottleResidency(const Fields& fields) : fields_(fields) {}

  /// Seconds since the first call. `unsupported` if the table lacks a part of it.
  Sample advance(const GpuMetricsBlob& blob) noexcept;

  /// Discards the last reading, so that the time before the next one is not counted.
  void restart() noexcept { last_.reset(); }

 private:
  struct Reading {
    std::uint64_t cycles = 0;
    double seconds = 0;
    std::array<std::uint64_t, kMaxFields> residencies{};
  };
  std::optional<Reading> read(const GpuMetricsBlob& blob) const noexcept;
  double throttled(const GpuMetricsBlob& blob, const Reading& now) const noexcept;

  Fields fields_;
  std::optional<Reading> last_;
  double total_ = 0;
};

}  // namespace gpumeter::amd
