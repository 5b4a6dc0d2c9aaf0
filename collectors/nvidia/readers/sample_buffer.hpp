#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/clock.hpp"
#include "collectors/api/sample.hpp"
#include "collectors/nvidia/nvml/caller.hpp"
#include "collectors/table/derived.hpp"

namespace gpumeter::nvidia {

/// One of the driver's sample buffers (nvmlDeviceGetSamples), drained once a pass. One call returns all
/// samples within the second. The driver's timestamps identify the samples; each covers the time since the
/// one before. The buffer runs dry while the GPU idles; a plain reading then takes its place. Lane thread.
class SampleBuffer {
 public:
  explicit SampleBuffer(nvml::SamplingType type) : type_(type) {}
  nvml::SamplingType type() const noexcept { return type_; }

  /// At attach: `ok` if the device has this buffer. Reserves room for the whole buffer.
  ReadStatus open(NvmlCaller& caller);

  /// A pass: its number, its start, and the time observed since the one before (zero: counting begins here).
  struct Moment {
    std::uint64_t pass;
    Nanoseconds now, elapsed;
  };
  bool is_due(const Moment& moment) const noexcept { return moment.pass != moment_.pass; }

  /// Counts the buffer's samples of this pass. Returns false if the buffer is dry; the caller then calls
  /// stand_in().
  bool drain(NvmlCaller& caller, const Moment& moment) noexcept;

  /// Counts a plain reading of the same quantity, in the buffer's unit, for the time without samples.
  void stand_in(Sample plain) noexcept;

  /// Ends the pass. Its counts are kept if the pass was observed, and counted again otherwise.
  void settle(bool is_observed) noexcept;

  /// The integral, in the buffer's unit times seconds, or the reason why there is none.
  Sample total() const noexcept { return said(counted_.total); }
  Sample max() const noexcept { return said(extremes_.max()); }
  Sample min() const noexcept { return said(extremes_.min()); }

 private:
  std::span<const nvml::BufferSample> read(NvmlCaller& caller, nvml::ValueType& type) noexcept;
  void begin_with(std::span<const nvml::BufferSample> samples, nvml::ValueType type) noexcept;
  void begin_before(std::span<const nvml::BufferSample> samples) noexcept;
  bool count(const nvml::BufferSample& sample, nvml::ValueType type) noexcept;
  Sample said(double value) const noexcept {
    return status_ == ReadStatus::ok ? Sample::of(value) : Sample::miss(status_);
  }

  nvml::SamplingType type_;
  std::vector<nvml::BufferSample> room_;
  Moment moment_{};
  struct Counted {
    std::uint64_t until = 0;  // microseconds, the driver's clock; 0: nothing was counted yet
    double total = 0;
    bool restarts =
        false;  // a pass was observed without this buffer: samples older than the next pass do not count
  };
  Counted counted_;
  Counted settled_;  // up to the last observed pass
  RollingExtremes extremes_;
  ReadStatus status_ = ReadStatus::failed;
};

}  // namespace gpumeter::nvidia
