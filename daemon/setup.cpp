#include "daemon/setup.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include "collectors/builtin.hpp"
#include "collectors/sources/pci_scan.hpp"
#include "config/checks.hpp"
#include "config/codec.hpp"

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

/// Elements that the file does not have come from flags.
config::Problem placed(const OptionProblem& problem, const CollectorEntry& entry,
                       const config::Places& places) {
  const std::string key = "collectors." + std::string(entry.name) + "." + problem.key;
  config::Problem found = places.problem(key, problem.element, problem.text);
  if (found.line > 0) return found;
  return {"gpumeter", 0, problem.key == "events" ? "--simulate-event" : key, problem.text};
}

void check_users(config::Config& config, const config::Places& places, jobs::KnownUsers& known,
                 std::vector<config::Problem>& problems, std::vector<std::string>& notes) {
  const std::vector<std::string> users = config.jobs.users;
  std::vector<std::string> names;
  std::copy_if(users.begin(), users.end(), std::back_inserter(names),
               [](const std::string& user) { return !config::is_number(user); });
  const auto entries = known.of(names);
  for (std::size_t i = 0; i < users.size(); ++i) {
    const auto entry = entries.find(users[i]);
    if (entry == entries.end()) continue;
    using Status = jobs::KnownUsers::Status;
    const std::string quoted = '"' + config::printable(users[i]) + '"';
    if (entry->second.status == Status::known) {
      config.jobs.users.push_back(std::to_string(entry->second.uid));
    } else if (entry->second.status == Status::unknown) {
      problems.push_back(places.problem(
          "jobs.users", i, "must be users of this machine, by name or uid; it has no user " + quoted));
    } else {
      notes.push_back("jobs.users: the name service does not answer; whether user " + quoted +
                      " exists is not checked");
    }
  }
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

config::Loaded load_checked(const Options& options, const Clock& clock, jobs::KnownUsers& users,
                            std::vector<std::string>& notes) {
  const auto schemas = schemas_of(builtin_collectors());
  config::Places places;
  config::Loaded loaded = load_config(options, schemas, &places);
  auto* config = std::get_if<config::Config>(&loaded);
  if (config == nullptr) return loaded;
  std::vector<config::Problem> problems;
  for (const CollectorEntry* entry : enabled_collectors(*config)) {
    const auto problem = entry->check(context_of(*config, *entry, clock));
    if (problem) problems.push_back(placed(*problem, *entry, places));
  }
  check_users(*config, places, users, problems, notes);
  if (!problems.empty()) return problems;
  return loaded;
}

bool has_bus(const config::Config& config) { return !is_simulated_only(enabled_collectors(config)); }

Bus bus_of(const config::Config& config) {
  Bus bus;
  if (!has_bus(config)) return bus;
  const SystemClock clock;
  pci::Scan scan("bus", clock);
  for (const pci::Function& adapter : scan.adapters(config.paths.sysfs).adapters) bus.add(adapter);
  return bus;
}

}  // namespace gpumeter
