#include "collectors/amd/kfd/processes.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/text.hpp"
#include "collectors/sources/sysfs.hpp"

namespace gpumeter::amd {
namespace {

constexpr std::string_view kMemoryPrefix = "vram_";
constexpr std::string_view kStatsPrefix = "stats_";

using Gpus = std::span<const std::uint32_t>;

/// N of "<prefix>N", where it is one of `gpus`.
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

}  // namespace gpumeter::amd
