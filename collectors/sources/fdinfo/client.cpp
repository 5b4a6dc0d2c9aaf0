#include "collectors/sources/fdinfo/client.hpp"

#include <algorithm>
#include <limits>
#include <span>

#include "base/text.hpp"

namespace gpumeter::fdinfo {
namespace {

// The text.

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};
constexpr Unit kPlain[] = {{"", 1}};
constexpr Unit kNanoseconds[] = {{"ns", 1}, {"", 1}};
constexpr Unit kHertz[] = {{"Hz", 1}, {"KHz", 1'000}, {"MHz", 1'000'000}, {"", 1}};
constexpr Unit kBytes[] = {{"", 1}, {"B", 1}, {"KiB", 1ULL << 10}, {"MiB", 1ULL << 20}, {"GiB", 1ULL << 30}};

std::optional<std::uint64_t> parse_quantity(std::string_view value, std::span<const Unit> units) noexcept {
  const std::optional<std::uint64_t> number = take_number<std::uint64_t>(value);
  if (!number) return std::nullopt;
  const std::string_view unit = trimmed(value);
  const auto known = std::find_if(units.begin(), units.end(), [&](const Unit& u) { return u.name == unit; });
  if (known == units.end()) return std::nullopt;
  if (*number > std::numeric_limits<std::uint64_t>::max() / known->factor) return std::nullopt;
  return *number * known->factor;
}

template <class Named>
struct Key {
  std::string_view prefix;
  std::optional<std::uint64_t> Named::*field;
  std::span<const Unit> units;
  std::uint64_t least = 0;
};

// A prefix that starts with another one stands above it.
constexpr Key<Engine> kEngineKeys[] = {
    {"drm-engine-capacity-", &Engine::capacity, kPlain, 1}, {"drm-engine-", &Engine::busy_ns, kNanoseconds},
    {"drm-total-cycles-", &Engine::total_cycles, kPlain},   {"drm-cycles-", &Engine::cycles, kPlain},
    {"drm-maxfreq-", &Engine::max_hertz, kHertz},           {"drm-curfreq-", &Engine::current_hertz, kHertz},
};
constexpr Key<Region> kRegionKeys[] = {
    {"drm-purgeable-", &Region::purgeable, kBytes}, {"drm-resident-", &Region::resident, kBytes},
    {"drm-shared-", &Region::shared, kBytes},       {"drm-active-", &Region::active, kBytes},
    {"drm-memory-", &Region::alias, kBytes},        {"drm-total-", &Region::total, kBytes},
};

template <class Named>
const Key<Named>* key_of(std::span<const Key<Named>> keys, std::string_view name) noexcept {
  const auto key = std::find_if(keys.begin(), keys.end(),
                                [&](const Key<Named>& each) { return name.starts_with(each.prefix); });
  return key == keys.end() ? nullptr : &*key;
}

template <class Named>
Named& named(std::vector<Named>& all, std::string_view name) {
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Named& each) { return each.name == name; });
  if (found != all.end()) return *found;
  all.push_back({});
  all.back().name = name;
  return all.back();
}

/// Returns false if the line is malformed.
template <class Named>
bool take(const Key<Named>& key, std::string_view name, std::string_view value, std::vector<Named>& all) {
  name.remove_prefix(key.prefix.size());
  const std::optional<std::uint64_t> number = parse_quantity(value, key.units);
  if (name.empty() || !number || *number < key.least) return false;
  std::optional<std::uint64_t>& field = named(all, name).*key.field;
  if (field) return false;
  field = number;
  return true;
}

bool take(std::string_view& field, std::string_view value) noexcept {
  if (value.empty() || !field.empty()) return false;
  field = value;
  return true;
}

bool take_id(std::optional<std::uint64_t>& field, std::string_view value) noexcept {
  if (field) return false;
  field = parse_number<std::uint64_t>(value);
  return field.has_value();
}

bool take_key(std::string_view name, std::string_view value, Text& to) {
  if (name == "drm-driver") return take(to.driver, value);
  if (name == "drm-pdev") return take(to.device, value);
  if (name == "drm-client-name") return value.empty() || take(to.client_name, value);
  if (name == "drm-client-id") return take_id(to.client_id, value);
  if (const auto* key = key_of<Engine>(kEngineKeys, name)) return take(*key, name, value, to.engines);
  if (const auto* key = key_of<Region>(kRegionKeys, name)) return take(*key, name, value, to.regions);
  to.others.push_back({name, value});
  return true;
}

bool take_line(std::string_view line, Text& to) {
  const bool is_ours = line.starts_with("drm-");
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return !is_ours;
  return take_key(line.substr(0, colon), trimmed(line.substr(colon + 1)), to);
}

// Its meaning.

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

std::optional<std::uint64_t> parse_bytes(std::string_view value) noexcept {
  return parse_quantity(trimmed(value), kBytes);
}

// The kernel ends every line. A line without an end was cut off, and its number with it.
Text parse(std::string_view text) {
  Text result;
  while (!text.empty()) {
    const bool is_whole = text.find('\n') != std::string_view::npos;
    const std::string_view line = take_until(text, '\n');
    const bool is_good = is_whole ? take_line(line, result) : !line.starts_with("drm-");
    if (!is_good) ++result.malformed;
  }
  return result;
}

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
