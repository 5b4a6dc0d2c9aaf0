#include "collectors/amd/kfd/processes.hpp"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/text.hpp"
#include "collectors/sources/sysfs.hpp"

namespace gpumeter::amd {
namespace {

constexpr std::string_view kMemoryPrefix = "vram_";
constexpr std::string_view kStatsPrefix = "stats_";

using Gpus = std::span<const std::uint32_t>;

/// The N of "<prefix>N" if `gpus` contains it.
std::optional<std::uint32_t> gpu_of(std::string_view name, std::string_view prefix, Gpus gpus) {
  if (!name.starts_with(prefix)) return std::nullopt;
  const std::optional<std::uint32_t> gpu = parse_number<std::uint32_t>(name.substr(prefix.size()));
  const bool is_asked = gpus.empty() || (gpu && std::find(gpus.begin(), gpus.end(), *gpu) != gpus.end());
  return is_asked ? gpu : std::nullopt;
}

void read_memory(const std::string& folder, const std::string& name, Gpus gpus,
                 std::map<std::uint32_t, KfdUse>& uses) {
  const std::optional<std::uint32_t> gpu = gpu_of(name, kMemoryPrefix, gpus);
  if (!gpu) return;
  const auto bytes = parse_number<std::uint64_t>(sysfs::read_text(folder + "/" + name));
  if (bytes) uses[*gpu].vram_bytes = *bytes;
}

void read_occupation(const std::string& folder, const std::string& name, Gpus gpus,
                     std::map<std::uint32_t, KfdUse>& uses) {
  const std::optional<std::uint32_t> gpu = gpu_of(name, kStatsPrefix, gpus);
  if (!gpu) return;
  const auto units = parse_number<int>(sysfs::read_text(folder + "/" + name + "/cu_occupancy"));
  if (units && *units >= 0) uses[*gpu].compute_units = *units;
}

std::vector<KfdUse> uses_of(const std::string& folder, KfdDetail detail, Gpus gpus) {
  std::map<std::uint32_t, KfdUse> uses;
  for (const std::string& name : sysfs::list(folder)) {
    read_memory(folder, name, gpus, uses);
    if (detail == KfdDetail::occupation) read_occupation(folder, name, gpus, uses);
  }
  std::vector<KfdUse> result;
  for (auto& [gpu, use] : uses) {
    use.gpu = gpu;
    result.push_back(use);
  }
  return result;
}

// The driver creates a file of each process for every GPU of the machine, used or not (kernel 6.12,
// kfd_process.c, kfd_procfs_add_sysfs_files).
bool is_in_use(const KfdUse& use) {
  return use.vram_bytes.value_or(0) > 0 || use.compute_units.value_or(0) > 0;
}

}  // namespace

std::map<int, std::vector<KfdUse>> kfd_processes(const std::string& sysfs_root, KfdDetail detail, Gpus gpus) {
  const std::string folder = sysfs_root + "/class/kfd/kfd/proc";
  std::map<int, std::vector<KfdUse>> processes;
  for (const std::string& name : sysfs::list(folder)) {
    const std::optional<int> pid = parse_number<int>(name);
    if (!pid || *pid <= 0) continue;
    std::vector<KfdUse> uses = uses_of(folder + "/" + name, detail, gpus);
    if (!uses.empty()) processes.emplace(*pid, std::move(uses));
  }
  return processes;
}

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
