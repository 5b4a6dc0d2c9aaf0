#pragma once

#include <array>
#include <optional>
#include <vector>

#include "base/clock.hpp"
#include "collectors/api/sample.hpp"
#include "collectors/nvidia/nvml/caller.hpp"

namespace gpumeter::nvidia {

/// GPU performance metrics (Hopper and newer): the difference between two samples of the hardware's counters.
/// They require neither root nor the profiler's lock. Lane thread.
class GpmSampler {
 public:
  /// Opens a GPU, or a GPU instance of it. Reads nothing if the device lacks these metrics.
  void open(const NvmlCaller& caller, std::optional<unsigned> gpu_instance);
  void close() noexcept;
  GpmSampler() = default;
  ~GpmSampler() { close(); }
  GpmSampler(const GpmSampler&) = delete;
  GpmSampler& operator=(const GpmSampler&) = delete;

  /// The result of open(): `unsupported` if the device lacks these metrics.
  ReadStatus opened() const noexcept { return opened_; }

  /// At attach: returns the place of a metric; nullopt if the device lacks it. May wait a tenth of a second
  /// for the two samples that a comparison requires.
  std::optional<int> add(unsigned metric);

  /// Allows one sample per pass, if the last one is old enough.
  void begin_pass() noexcept { is_fresh_ = false; }

  /// The mean, or the count, of a metric since the previous pass. Metrics are never negative, infinite or
  /// NaN. The driver sometimes returns such values; they are out of range.
  Sample read(int place) noexcept;

  /// Seconds between the two samples behind read(), by the steady clock; the samples end at the same moments.
  double interval() const noexcept { return interval_; }

  /// The caller of this class is separate, so it detects a lost GPU independently.
  const NvmlCaller& caller() const noexcept { return caller_; }

 private:
  bool is_open() const noexcept { return samples_[0] != nullptr; }
  ReadStatus prepare();
  unsigned take(nvml::GpmSample sample) noexcept;
  void advance() noexcept;
  unsigned compute() noexcept;

  NvmlCaller caller_;
  std::optional<unsigned> gpu_instance_;
  std::array<nvml::GpmSample, 2> samples_{};  // older, newer
  std::array<Nanoseconds, 2> taken_{};
  std::unique_ptr<nvml::GpmMetricsGet> metrics_;
  unsigned result_ = nvml::kNotReady;
  ReadStatus opened_ = ReadStatus::unsupported;
  double interval_ = 0;
  bool is_fresh_ = false;
};

}  // namespace gpumeter::nvidia
