#pragma once

#include <map>
#include <string>
#include <vector>

#include "collectors/api/process_list.hpp"
#include "collectors/nvidia/nvml/caller.hpp"
#include "collectors/nvidia/processes/busy.hpp"

namespace gpumeter::nvidia {

/// The busy time of a host's virtual GPUs, by vGPU instance.
class VgpuBusy final : public Busy {
 private:
  unsigned read_samples(NvmlCaller& caller, std::uint64_t since) override;
  unsigned ask_present(NvmlCaller& caller, std::uint64_t since);
  unsigned ask_former(NvmlCaller& caller, std::uint64_t since);

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

}  // namespace gpumeter::nvidia
