#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.hpp"
#include "collectors/api/sample.hpp"
#include "collectors/nvidia/nvml/caller.hpp"

namespace gpumeter::nvidia {

/// The time that each user of a GPU (a process or a virtual GPU) was at work, from the driver's samples. The
/// driver keeps the last 72
/// samples, about six a second. Each holds the process that was on the engine at that moment and the engine's
/// load (open-gpu-kernel-modules, ctrl2080perf.h, NV2080_CTRL_PERF_GPUMON_PERFMON_UTIL_SAMPLE). For each
/// process NVML returns the mean over all samples since a timestamp. The timestamp next to the mean is only
/// that of the last sample with the process (shown in Syllo/nvtop#110 and NVIDIA/go-nvml#51). A mean
/// therefore covers the whole time since the requested timestamp. Lane thread; throws only what a vector
/// does.
class Busy {
 public:
  virtual ~Busy() = default;

  void open() noexcept { seen_until_ = newest_ = 0; }

  /// Reads the samples since the last call, `elapsed` ago; zero: counting begins here. Returns `ok` if
  /// seconds_of() covers every user.
  ReadStatus read(NvmlCaller& caller, Nanoseconds elapsed);

  /// Busy seconds of a user up to the last read(): at most its `elapsed`; 0 for a user that was not at work.
  double seconds_of(unsigned user) const noexcept;

 protected:
  Busy() = default;
  Busy(const Busy&) = default;
  Busy(Busy&&) = default;
  Busy& operator=(const Busy&) = default;
  Busy& operator=(Busy&&) = default;

  /// One user's mean since a timestamp.
  struct Share {
    unsigned user;
    std::uint64_t timestamp;
    unsigned percent;
  };
  /// Reads the samples after `since` and calls take_in() for each. Returns NVML's result.
  virtual unsigned read_samples(NvmlCaller& caller, std::uint64_t since) = 0;
  void take_in(const Share& share, std::uint64_t since);

 private:
  unsigned ask(NvmlCaller& caller, std::uint64_t since);
  unsigned begin(NvmlCaller& caller);
  unsigned go_on(NvmlCaller& caller);
  std::uint64_t newest_share() const noexcept;

  std::vector<Share> shares_;
  Nanoseconds elapsed_{};
  // Microseconds, the driver's clock; 0: not known.
  std::uint64_t seen_until_ = 0;  // the next read starts here
  std::uint64_t newest_ = 0;      // the newest sample so far
};

/// The busy time of processes, by pid.
class ProcessBusy final : public Busy {
 private:
  unsigned read_samples(NvmlCaller& caller, std::uint64_t since) override;
  unsigned ask_present(NvmlCaller& caller, std::uint64_t since);
  unsigned ask_former(NvmlCaller& caller, std::uint64_t since);

  std::vector<nvml::ProcessUtilizationInfo> present_;
  std::vector<nvml::ProcessUtilization> former_;
};

}  // namespace gpumeter::nvidia
