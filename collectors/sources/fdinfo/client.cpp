#include "collectors/sources/fdinfo/client.hpp"

#include <algorithm>
#include <iterator>

namespace gpumeter::fdinfo {
namespace {

std::optional<std::size_t> place_of(std::string_view driver, std::string_view name) noexcept {
  const auto found =
      std::find_if(std::begin(kEngineNames), std::end(kEngineNames),
                   [&](const EngineName& each) { return each.driver == driver && each.name == name; });
  if (found == std::end(kEngineNames)) return std::nullopt;
  return static_cast<std::size_t>(found - std::begin(kEngineNames));
}

std::optional<EngineCount> count_of(std::size_t place, const Engine& engine) noexcept {
  const auto capacity = static_cast<double>(engine.capacity.value_or(1));
  if (engine.busy_ns) return EngineCount{place, false, *engine.busy_ns, 0, capacity};
  if (engine.cycles && engine.total_cycles)
    return EngineCount{place, true, *engine.cycles, *engine.total_cycles, capacity};
  return std::nullopt;
}

bool is_device(std::string_view region) noexcept {
  return region.starts_with("vram") || region.starts_with("local") || region.starts_with("stolen-local");
}

bool is_system(std::string_view region) noexcept {
  return region == "gtt" || region == "memory" || region == "cpu" || region.starts_with("system") ||
         region.starts_with("stolen-system");
}

void add(std::optional<double>& sum, double bytes) noexcept { sum = sum.value_or(0) + bytes; }

}  // namespace

std::vector<EngineCount> engines_of(const Text& text) {
  std::vector<EngineCount> counts;
  for (const Engine& engine : text.engines) {
    const std::optional<std::size_t> place = place_of(text.driver, engine.name);
    if (!place) continue;
    if (const auto count = count_of(*place, engine)) counts.push_back(*count);
  }
  return counts;
}

ClientMemory memory_of(const Text& text) {
  const bool has_resident = std::any_of(text.regions.begin(), text.regions.end(), [](const Region& region) {
    return region.resident.has_value() || region.alias.has_value();
  });
  ClientMemory memory;
  for (const Region& region : text.regions) {
    const bool on_device = is_device(region.name);
    if (!on_device && !is_system(region.name)) continue;
    const std::optional<std::uint64_t> resident = region.resident ? region.resident : region.alias;
    const std::optional<std::uint64_t> bytes = has_resident ? resident : region.total;
    if (!bytes) continue;
    const auto shared = static_cast<double>(std::min(region.shared.value_or(0), *bytes));
    add(on_device ? memory.device : memory.system, static_cast<double>(*bytes));
    (on_device ? memory.shared_device : memory.shared_system) += shared;
  }
  for (const OtherKey& other : text.others) {
    if (other.name != "panthor-resident-memory") continue;
    if (const auto bytes = parse_bytes(other.value)) add(memory.system, static_cast<double>(*bytes));
  }
  return memory;
}

}  // namespace gpumeter::fdinfo
