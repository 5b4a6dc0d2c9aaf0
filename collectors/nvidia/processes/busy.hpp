#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.hpp"
#include "collectors/api/sample.hpp"
#include "collectors/nvidia/nvml/caller.hpp"

namespace gpumeter::nvidia {

/// The time that each process was at work on a GPU, from the driver's samples. The driver keeps the last 72
/// samples, about six a second. Each holds the process that was on the engine at that moment and the engine's
/// load (open-gpu-kernel-modules, ctrl2080perf.h, NV2080_CTRL_PERF_GPUMON_PERFMON_UTIL_SAMPLE). For each
/// process NVML returns the mean over all samples since a timestamp. The timestamp next to the mean is only
/// that of the last sample with the process (shown in Syllo/nvtop#110 and NVIDIA/go-nvml#51). A mean
/// therefore covers the whole time since the requested timestamp. Lane thread; throws only what a vector
/// does.
class ProcessBusy {
 public:
  void open() noexcept { seen_until_ = newest_ = 0; }

  /// Reads the samples since the last call, `elapsed` ago; zero: counting begins here. Returns `ok` if
  /// seconds_of() covers every process.
  ReadStatus read(NvmlCaller& caller, Nanoseconds elapsed);

  /// Busy seconds of a process up to the last read(): at most its `elapsed`; 0 for a process that was not at
  /// work.
  double seconds_of(int pid) const noexcept;

 private:
  struct Share {
    unsigned pid;
    std::uint64_t timestamp;
    double ratio;
  };

  unsigned ask(NvmlCaller& caller, std::uint64_t since);
  unsigned ask_present(NvmlCaller& caller, std::uint64_t since);
  unsigned ask_former(NvmlCaller& caller, std::uint64_t since);
  template <class Sample_>
  void take_in(const std::vector<Sample_>& samples, std::size_t count, std::uint64_t since);
  unsigned begin(NvmlCaller& caller);
  unsigned go_on(NvmlCaller& caller);
  std::uint64_t newest_share() const noexcept;

  std::vector<nvml::ProcessUtilizationInfo> present_;
  std::vector<nvml::ProcessUtilization> former_;
  std::vector<Share> shares_;
  Nanoseconds elapsed_{};
  // Microseconds, the driver's clock; 0: not known.
  std::uint64_t seen_until_ = 0;  // the next read starts here
  std::uint64_t newest_ = 0;      // the newest sample so far
};

}  // namespace gpumeter::nvidia
