#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "collectors/amd/gpu_metrics/blob.hpp"

namespace gpumeter::amd {

/// Time under throttling as MI300 and later count it (gpu_metrics 1.6 on). In each of its cycles the firmware
/// adds 1 to accumulation_counter, and 1 to each residency that holds in it. So of the time between two
/// reads, by the firmware's own clock, the share
///
///   growth of the residency / growth of accumulation_counter
///
/// was throttled; AMD's tools show the same as "violation". Of several residencies the one that grew most
/// counts: how far they overlapped is not known, so that is what any of them held at least. One thread.
class ThrottleResidency {
 public:
  static constexpr std::size_t kMaxFields = 3;
  using Fields = std::array<std::optional<std::size_t>, kMaxFields>;

  ThrottleResidency() = default;
  explicit ThrottleResidency(const Fields& fields) : fields_(fields) {}

  /// Seconds since the first call. `unsupported` where the table has not all of it.
  Sample advance(const GpuMetricsBlob& blob) noexcept;

  /// What was before the next reading is not counted.
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
