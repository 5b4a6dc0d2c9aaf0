#pragma once

#include <array>
#include <optional>
#include <vector>

#include "base/clock.hpp"
#include "collectors/api/sample.hpp"
#include "collectors/nvidia/nvml/caller.hpp"

namespace gpumeter::nvidia {

/// GPU performance metrics (Hopper and newer): what happened between two samples of the hardware's counters.
/// Needs no root, no profiler's lock. Lane thread.
class GpmSampler {
 public:
  /// Of a GPU, or of a GPU instance of it. Reads nothing where the device has no such metrics.
  void open(const NvmlCaller& caller, std::optional<unsigned> gpu_instance);
  void close() noexcept;
  GpmSampler() = default;
  ~GpmSampler() { close(); }
  GpmSampler(const GpmSampler&) = delete;
  GpmSampler& operator=(const GpmSampler&) = delete;

  /// How open() ended: `unsupported` where the device has no such metrics.
  ReadStatus opened() const noexcept { return opened_; }

  /// At attach: the place of a metric; nullopt where the device has none of it. May wait for a tenth of a
  /// second, until there are two samples to compare.
  std::optional<int> add(unsigned metric);

  /// Takes a sample at most once a pass, and not before the last one is old enough.
  void begin_pass() noexcept { is_fresh_ = false; }

  /// The mean, or the count, of a metric over the time since the pass before. No metric is negative, infinite
  /// or no number; the driver gives such values at times, and they are out of range.
  Sample read(int place) noexcept;

  /// Seconds between the two samples that read() speaks of, by this clock; they end at the same moments.
  double interval() const noexcept { return interval_; }

  /// Its own caller, which finds out by itself that the GPU is lost.
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
