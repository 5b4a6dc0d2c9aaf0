#include "daemon/setup.hpp"

#include <utility>

#include "collectors/builtin.hpp"
#include "collectors/support/pci.hpp"

namespace gpumeter {
namespace {

config::OptionSchema schema_of(const CollectorOption& option) {
  return {std::string(option.name), static_cast<config::OptionSchema::Kind>(option.kind),
          std::string(option.fallback), std::string(option.help)};
}

DeviceLabels labels_of(const config::Config& config) {
  std::vector<std::string> names;
  for (const config::DeviceLabel label : config.device_labels) names.emplace_back(config::to_string(label));
  return DeviceLabels::of(names).value_or(DeviceLabels{});
}

bool is_simulated_only(const std::vector<const CollectorEntry*>& entries) {
  return entries.size() == 1 && entries.front()->name == "simulated";
}

}  // namespace

// The two enumerations are the same list, kept apart because config knows no collector.
static_assert(static_cast<int>(CollectorOption::Kind::list) ==
              static_cast<int>(config::OptionSchema::Kind::list));

std::vector<config::CollectorSchema> schemas_of(std::span<const CollectorEntry> collectors) {
  std::vector<config::CollectorSchema> schemas;
  for (const CollectorEntry& collector : collectors) {
    config::CollectorSchema schema{std::string(collector.name), {}};
    for (const CollectorOption& option : collector.options) schema.options.push_back(schema_of(option));
    schemas.push_back(std::move(schema));
  }
  return schemas;
}

std::vector<const CollectorEntry*> enabled_collectors(const config::Config& config) {
  std::vector<const CollectorEntry*> enabled;
  for (const CollectorEntry& entry : builtin_collectors()) {
    const config::Enabled wish = config.collectors.at(std::string(entry.name)).enabled;
    const bool by_default = wish == config::Enabled::automatic && entry.enabled_by_default;
    if (by_default || wish == config::Enabled::on) enabled.push_back(&entry);
  }
  return enabled;
}

CollectorContext context_of(const config::Config& config, const CollectorEntry& entry, const Clock& clock) {
  return {config.paths.sysfs, config.paths.procfs, &clock,
          config.collectors.at(std::string(entry.name)).options};
}

SamplingIntervals intervals_of(const config::Config& config) {
  return {config.sampling.fast, config.sampling.normal, config.sampling.slow};
}

FleetSettings settings_of(const config::Config& config) {
  return {intervals_of(config), labels_of(config), config.devices.names, config.devices.forget};
}

WorkloadSettings workload_settings_of(const config::Config& config, UserName user_name) {
  WorkloadSettings settings;
  if (config.workloads.enabled) settings.book = std::make_shared<workloads::WorkloadBook>();
  settings.procfs = config.paths.procfs;
  settings.processes = config.workloads.processes;
  settings.user_name = std::move(user_name);
  return settings;
}

config::Loaded load_checked(const Options& options, const Clock& clock) {
  const auto schemas = schemas_of(builtin_collectors());
  config::Loaded loaded = load_config(options, schemas);
  const auto* config = std::get_if<config::Config>(&loaded);
  if (config == nullptr) return loaded;
  std::vector<config::Problem> problems;
  for (const CollectorEntry* entry : enabled_collectors(*config)) {
    const Result<Done> checked = entry->check(context_of(*config, *entry, clock));
    const std::string file = options.config_file.empty() ? "gpumeter" : options.config_file;
    if (!checked) problems.push_back({file, 0, "", checked.error().message()});
  }
  if (!problems.empty()) return problems;
  return loaded;
}

bool has_bus(const config::Config& config) { return !is_simulated_only(enabled_collectors(config)); }

Bus bus_of(const config::Config& config) {
  Bus bus;
  if (!has_bus(config)) return bus;
  for (const pci::Function& adapter : pci::display_adapters(config.paths.sysfs)) bus.add(adapter);
  return bus;
}

}  // namespace gpumeter
