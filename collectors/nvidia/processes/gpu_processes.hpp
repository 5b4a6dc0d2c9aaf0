#pragma once

#include <span>
#include <vector>

#include "collectors/api/process_list.hpp"
#include "collectors/nvidia/mig_instances.hpp"
#include "collectors/nvidia/processes/busy.hpp"
#include "collectors/nvidia/processes/lists.hpp"
#include "collectors/nvidia/processes/vgpus.hpp"

namespace gpumeter::nvidia {

/// The processes that use a GPU, or the virtual machines among which its host divides it, from NVML. Shared
/// by the device, which reads them, and its context, which opens and closes the GPU. Lane thread.
class GpuProcesses {
 public:
  void open(const NvmlCaller& gpu, std::span<const MigInstance> instances);
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

  ReadStatus list(const Pass& pass, std::vector<DeviceProcess>& out);
  ReadStatus list_processes(const Pass& pass, std::vector<DeviceProcess>& out);
  ReadStatus ask_for_lists();
  ReadStatus ask_instances(ReadStatus otherwise);

  NvmlCaller gpu_;
  std::vector<Instance> instances_;  // with MIG: each compute instance
  ProcessLists lists_;
  ProcessBusy busy_;
  Vgpus vgpus_;
};

}  // namespace gpumeter::nvidia
