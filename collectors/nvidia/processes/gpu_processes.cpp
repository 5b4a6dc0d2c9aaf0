#include "collectors/nvidia/processes/gpu_processes.hpp"

#include <exception>

namespace gpumeter::nvidia {
void GpuProcesses::open(const NvmlCaller& gpu, std::span<const MigInstance> instances) {
  gpu_ = gpu;
  instances_.clear();
  for (const MigInstance& instance : instances) {
    for (const nvml::Device handle : instance.compute_instances)
      instances_.push_back({NvmlCaller(gpu.session(), handle), instance.gpu_instance});
  }
  lists_.open(driver_version(gpu_));
  busy_.open();
  vgpus_.open(gpu_);
}

void GpuProcesses::close() noexcept {
  gpu_ = {};
  instances_.clear();
}

unsigned GpuProcesses::lost_by() const noexcept {
  for (const Instance& instance : instances_) {
    if (instance.caller.lost_by() != nvml::kSuccess) return instance.caller.lost_by();
  }
  return gpu_.lost_by();
}

ReadStatus GpuProcesses::read(const Pass& pass, std::vector<DeviceProcess>& out) noexcept {
  try {
    return list(pass, out);
  } catch (const std::exception&) {  // out of memory
    out.clear();
    return ReadStatus::failed;
  }
}

// The vGPU manager's own processes hold the memory of the machines, and its driver runs no other work on the
// host. Listing them too would count the memory twice.
ReadStatus GpuProcesses::list(const Pass& pass, std::vector<DeviceProcess>& out) {
  if (vgpus_.is_host()) {
    const ReadStatus status = vgpus_.read(gpu_, pass.elapsed, out);
    if (status != ReadStatus::ok || !out.empty()) return status;
  }
  return list_processes(pass, out);
}

// The driver does not sample processes of a divided GPU (nvml.h at nvmlDeviceGetProcessUtilization).
ReadStatus GpuProcesses::list_processes(const Pass& pass, std::vector<DeviceProcess>& out) {
  if (const ReadStatus status = ask_for_lists(); status != ReadStatus::ok) return status;
  const ReadStatus busy = instances_.empty() ? busy_.read(gpu_, pass.elapsed) : ReadStatus::unsupported;
  if (busy == ReadStatus::gone) return busy;
  lists_.append_to(out);
  for (DeviceProcess& process : out) {
    if (busy == ReadStatus::ok) process.busy_seconds = busy_.seconds_of(static_cast<unsigned>(process.pid));
  }
  return ReadStatus::ok;
}

// The lists of a divided GPU name all processes. If the caller lacks the right to see them, the lists are
// empty (nvml.h at nvmlDeviceGetComputeRunningProcesses_v3). Each instance is then read by itself, at the
// cost of one set of calls per instance.
ReadStatus GpuProcesses::ask_for_lists() {
  lists_.begin();
  const ReadStatus status = lists_.add(gpu_);
  const bool is_answer = instances_.empty() || !lists_.empty() || status == ReadStatus::gone;
  return is_answer ? status : ask_instances(status);
}

ReadStatus GpuProcesses::ask_instances(ReadStatus otherwise) {
  lists_.begin();
  ReadStatus result = otherwise;
  for (Instance& instance : instances_) {
    const ReadStatus status = lists_.add(instance.caller, instance.gpu_instance);
    if (status == ReadStatus::unsupported) continue;
    if (status != ReadStatus::ok) return status;
    result = ReadStatus::ok;
  }
  return result;
}

}  // namespace gpumeter::nvidia
