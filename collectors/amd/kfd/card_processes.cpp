#include "collectors/amd/kfd/card_processes.hpp"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

namespace gpumeter::amd {
namespace {

// The driver makes a file of each process for every GPU of the machine, used or not (kernel 6.12,
// kfd_process.c, kfd_procfs_add_sysfs_files).
bool is_in_use(const KfdUse& use) {
  return use.vram_bytes.value_or(0) > 0 || use.compute_units.value_or(0) > 0;
}

}  // namespace

void CardProcesses::open(std::string sysfs_root, const std::vector<KfdNode>& nodes) {
  sysfs_root_ = std::move(sysfs_root);
  gpu_ids_.clear();
  for (const KfdNode& node : nodes) gpu_ids_.push_back(node.gpu_id);
  const std::optional<KfdNode> card = kfd_whole(nodes);
  compute_units_ = card ? card->compute_units : 0;
  may_ask_hardware_ = false;
}

ReadStatus CardProcesses::read(const Pass& pass, std::vector<DeviceProcess>& out) noexcept {
  try {
    return list(pass, out);
  } catch (const std::exception&) {  // out of memory
    out.clear();
    return ReadStatus::failed;
  }
}

ReadStatus CardProcesses::list(const Pass& pass, std::vector<DeviceProcess>& out) const {
  std::error_code error;
  const std::string folder = sysfs_root_ + "/class/kfd/kfd/proc";
  if (gpu_ids_.empty() || !std::filesystem::is_directory(folder, error)) return ReadStatus::unsupported;
  const KfdDetail detail = may_ask_hardware_ ? KfdDetail::occupation : KfdDetail::memory;
  for (const auto& [pid, uses] : kfd_processes(sysfs_root_, detail, gpu_ids_)) {
    if (std::any_of(uses.begin(), uses.end(), is_in_use)) out.push_back(describe(pid, uses, pass.elapsed));
  }
  return ReadStatus::ok;
}

DeviceProcess CardProcesses::describe(int pid, const std::vector<KfdUse>& uses, Nanoseconds elapsed) const {
  DeviceProcess process{pid, std::nullopt, std::nullopt};
  std::optional<int> occupied;
  for (const KfdUse& use : uses) {
    if (use.vram_bytes)
      process.memory_bytes = process.memory_bytes.value_or(0) + static_cast<double>(*use.vram_bytes);
    if (use.compute_units) occupied = occupied.value_or(0) + *use.compute_units;
  }
  if (occupied && compute_units_ > 0)
    process.busy_seconds =
        std::min(1.0, static_cast<double>(*occupied) / compute_units_) * to_seconds(elapsed);
  return process;
}

}  // namespace gpumeter::amd
