#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.hpp"
#include "collectors/api/sample.hpp"
#include "collectors/nvidia/nvml/caller.hpp"

namespace gpumeter::nvidia {

/// For how long each process was at work on a GPU, by the driver's samples. It keeps the last 72, about six a
/// second, each with the process that was on the engine at that moment and how busy the engine was
/// (open-gpu-kernel-modules, ctrl2080perf.h, NV2080_CTRL_PERF_GPUMON_PERFMON_UTIL_SAMPLE), and NVML gives of
/// each process the mean over all samples since a timestamp. The timestamp next to it is only that of the
/// last sample the process was in (Syllo/nvtop#110, NVIDIA/go-nvml#51 show both), so a mean stands for the
/// whole time since then. Lane thread; throws only what a vector does.
class ProcessBusy {
 public:
  void open() noexcept { seen_until_ = newest_ = 0; }

  /// Asks for what happened since the last time, `elapsed` ago; zero: counting begins here. `ok` if
  /// seconds_of() covers every process.
  ReadStatus read(NvmlCaller& caller, Nanoseconds elapsed);

  /// Of the time before the last read(): at most its `elapsed`; 0 for who was not at work.
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
  std::uint64_t seen_until_ = 0;  // where the next question begins
  std::uint64_t newest_ = 0;      // the last sample that was seen
};

}  // namespace gpumeter::nvidia
