#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "collectors/api/process_list.hpp"
#include "collectors/api/sample.hpp"
#include "collectors/nvidia/identity.hpp"
#include "collectors/nvidia/nvml/session.hpp"
#include "collectors/nvidia/sources.hpp"

namespace gpumeter::nvidia {

/// The time that each user of a GPU (a process or a virtual GPU) was at work, from the driver's samples. The
/// driver keeps the last 72 samples, about six a second. Each holds the process that was on the engine at
/// that moment and the engine's load (open-gpu-kernel-modules, ctrl2080perf.h,
/// NV2080_CTRL_PERF_GPUMON_PERFMON_UTIL_SAMPLE). For each process NVML returns the mean over all samples
/// since a timestamp. The timestamp next to the mean is only that of the last sample with the process (shown
/// in Syllo/nvtop#110 and NVIDIA/go-nvml#51). A mean therefore covers the whole time since the requested
/// timestamp. Lane thread; throws only what a vector does.
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
  /// Takes in the samples after `since`. Returns NVML's result.
  virtual unsigned read_samples(NvmlCaller& caller, std::uint64_t since) = 0;
  /// Fills `room` by call(), and takes in the shares after `since` that share_of() makes of its entries.
  template <class Entry, class Call, class ShareOf>
  unsigned take_list(std::vector<Entry>& room, unsigned& count, std::uint64_t since, Call call,
                     ShareOf share_of);

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

  std::vector<nvml::ProcessUtilizationInfo> present_;
  std::vector<nvml::ProcessUtilization> former_;
};

/// The processes with a context on a GPU, merged from the driver's lists of compute processes, graphics
/// processes and MPS clients. Lane thread; throws only what a vector does.
class ProcessLists {
 public:
  void open(std::string_view driver_version);

  void begin() noexcept { entries_.clear(); }

  /// Adds the lists of a GPU, or of a MIG instance by the number of its GPU instance. `unsupported`: none of
  /// the lists exists.
  ReadStatus add(NvmlCaller& caller, unsigned gpu_instance = nvml::kNoInstance);

  bool empty() const noexcept { return entries_.empty(); }

  /// Appends all entries added since begin(): each pid once, in ascending order.
  void append_to(std::vector<DeviceProcess>& out);

  /// Divides a GPU instance among its processes, which append_to() has listed: by memory, otherwise equally.
  /// Returns false if it has none.
  bool divide(unsigned gpu_instance, std::optional<double> device_seconds, double held_ratio,
              std::vector<DeviceProcess>& listed) const;

 private:
  /// One line of one list.
  struct Entry {
    unsigned pid, gpu_instance, compute_instance;
    std::size_t list;
    std::uint64_t memory;
  };
  using Entries = std::span<const Entry>;

  template <auto Function>
  unsigned ask(NvmlCaller& caller, unsigned& count);
  template <auto Function>
  ReadStatus read(NvmlCaller& caller, std::size_t list, unsigned gpu_instance);
  bool take_in(std::size_t count, std::size_t list, unsigned gpu_instance);
  bool make_room(std::size_t count);

  static std::optional<double> memory_of(Entries process);
  static std::optional<double> memory_in_instance(Entries process);

  bool may_be_wide_ = false;
  std::vector<std::byte> room_;  // buffer for the driver, in either layout
  std::vector<Entry> entries_;
};

/// The busy time of a host's virtual GPUs, by vGPU instance.
class VgpuBusy final : public Busy {
 private:
  unsigned read_samples(NvmlCaller& caller, std::uint64_t since) override;

  std::vector<nvml::VgpuUtilization> present_;
  std::vector<nvml::FormerVgpuUtilization> former_;
};

/// The virtual machines that have a virtual GPU of this host's GPU. Lane thread; throws only what a container
/// does.
class Vgpus {
 public:
  /// Asks whether the GPU is one that its host divides (NVIDIA's vGPU manager).
  void open(NvmlCaller& gpu);

  bool is_host() const noexcept { return is_host_; }

  /// Appends each virtual GPU: its machine, memory, and busy time over `elapsed`. `ok` without entries: no
  /// virtual GPU is active.
  ReadStatus read(NvmlCaller& gpu, Nanoseconds elapsed, std::vector<DeviceProcess>& out);

 private:
  const std::string& machine_of(NvmlCaller& gpu, nvml::Vgpu vgpu);

  bool is_host_ = false;
  std::vector<nvml::Vgpu> active_;
  std::map<nvml::Vgpu, std::string> machines_;  // of the active ones
  VgpuBusy busy_;
};

/// The processes that use a GPU, or the virtual machines among which its host divides it, from NVML. Shared
/// by the device, which reads them, and its context, which opens and closes the GPU. Lane thread.
class GpuProcesses {
 public:
  /// `samplers`: of the instances, in their order.
  void open(const NvmlCaller& gpu, std::span<const MigInstance> instances,
            std::span<GpmSampler* const> samplers);
  void close() noexcept;

  /// Same contract as ListsProcesses::processes().
  ReadStatus read(const Pass& pass, std::vector<DeviceProcess>& out) noexcept;

  /// The callers of this class are separate, so they detect a lost GPU independently.
  bool is_lost() const noexcept { return lost_by() != nvml::kSuccess; }
  unsigned lost_by() const noexcept;

 private:
  struct Instance {
    NvmlCaller caller;
    unsigned gpu_instance;
  };
  struct Slice {  // a GPU instance
    unsigned gpu_instance;
    double compute_part, held_ratio;
    GpmSampler* sampler;
  };

  void divide_slices(std::vector<DeviceProcess>& listed);
  ReadStatus list(const Pass& pass, std::vector<DeviceProcess>& out);
  ReadStatus list_processes(const Pass& pass, std::vector<DeviceProcess>& out);
  ReadStatus ask_for_lists();
  ReadStatus ask_instances(ReadStatus otherwise);

  NvmlCaller gpu_;
  std::vector<Instance> instances_;  // with MIG: each compute instance
  std::vector<Slice> slices_;        // with MIG, if the driver reports their sizes
  ProcessLists lists_;
  ProcessBusy busy_;
  Vgpus vgpus_;
};

}  // namespace gpumeter::nvidia
