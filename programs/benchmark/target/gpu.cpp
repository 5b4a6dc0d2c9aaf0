#include "programs/benchmark/target/gpu.hpp"

#include <algorithm>
#include <cstdio>

#include "collectors/sources/pci.hpp"

namespace gpumeter::benchmark {
namespace {

// An idle GPU's driver holds up to 2 % of the memory, and its clocks and voltages are those of a cool chip.
constexpr double kMostMemoryShare = 0.02;
constexpr double kMostCelsius = 60;
constexpr double kMostUtilization = 0.02;

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.0f %%", share * 100);
  return text;
}

}  // namespace

std::optional<std::string> why_not(const Gpu& gpu) {
  if (!gpu.is_up) return "the daemon cannot read it";
  if (gpu.is_suspended) return "it sleeps";
  if (gpu.is_divided) return "it is divided into MIG instances";
  if (gpu.is_exclusive)
    return "its compute mode is exclusive, so the benchmark would keep a job from starting";
  for (const Holder& holder : gpu.holders) return "the " + holder.kind + " " + holder.workload + " uses it";
  const double busy = std::max(gpu.utilization.value_or(0), gpu.highest_utilization.value_or(0));
  if (busy > kMostUtilization) return "it was " + percent(busy) + " busy within the last 5 minutes";
  if (gpu.memory_used && gpu.memory_size && *gpu.memory_used > kMostMemoryShare * *gpu.memory_size)
    return percent(*gpu.memory_used / *gpu.memory_size) + " of its memory is used";
  if (gpu.temperature && *gpu.temperature >= kMostCelsius) return "it is hotter than 60 °C";
  return std::nullopt;
}

const Gpu* find_gpu(const std::vector<Gpu>& gpus, std::string_view name) {
  const auto address = pci::parse_address(name);
  const auto found = std::ranges::find_if(gpus, [&](const Gpu& gpu) {
    return gpu.index == name || gpu.uuid == name ||
           (address && pci::parse_address(gpu.pci_address) == address);
  });
  return found == gpus.end() ? nullptr : &*found;
}

}  // namespace gpumeter::benchmark
