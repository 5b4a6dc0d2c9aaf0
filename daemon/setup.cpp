#include "daemon/setup.hpp"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "base/paths.hpp"
#include "collectors/builtin.hpp"
#include "collectors/jobs/intake/settings.hpp"
#include "collectors/pages/replay.hpp"
#include "daemon/parts/host.hpp"
#include "exporter/http/settings.hpp"
#include "exporter/text/selection.hpp"
#include "programs/nccl/settings.hpp"
#include "programs/profiler/settings.hpp"
#include "programs/servers/settings.hpp"

namespace gpumeter {

namespace {

/// In the order of the documentation: the daemon's own with those of its parts among them, then those of
/// the services.
std::vector<const options::Section*> all_sections() {
  std::vector<const options::Section*> sections = {&kWebSection,      &kMetricsSection,
                                                   &kSamplingSection, &kDeviceLabelsSection,
                                                   &kDeviceSection,   &kWorkloadSection};
  for (const PartEntry* const part : builtin_parts()) {
    if (part->options != nullptr) sections.push_back(part->options);
  }
  sections.insert(sections.end(), {&kPathSection, &kLogSection, &jobs::kSection, &jobs::kLimitsSection,
                                   &nccl::kSection, &profiles::kSection, &servers::kSection});
  return sections;
}

}  // namespace

config::Schema schema_of(std::span<const CollectorEntry> collectors) {
  static const std::vector<const options::Section*> kSections = all_sections();
  config::Schema schema{.sections = kSections};
  for (const CollectorEntry& collector : collectors) {
    schema.collectors.push_back(
        {std::string(collector.name), {collector.options.begin(), collector.options.end()}});
  }
  return schema;
}

const config::Schema& schema() {
  static const config::Schema kSchema = schema_of(builtin_collectors());
  return kSchema;
}

bool is_enabled(const CollectorEntry& entry, const config::Config& config) {
  const options::Enabled wish = config.collectors.at(std::string(entry.name)).enabled;
  return wish == options::Enabled::automatic ? entry.enabled_by_default : wish == options::Enabled::on;
}

std::vector<const CollectorEntry*> enabled_collectors(const config::Config& config) {
  std::vector<const CollectorEntry*> enabled;
  for (const CollectorEntry& entry : builtin_collectors()) {
    if (is_enabled(entry, config)) enabled.push_back(&entry);
  }
  return enabled;
}

CollectorContext context_of(const config::Config& config, const CollectorEntry& entry, const Clock& clock,
                            std::shared_ptr<DrmUsers> drm_users, std::shared_ptr<EventLedger> events) {
  const Paths& paths = config.of<Paths>();
  CollectorContext context{paths.sysfs, paths.procfs, &clock,
                           config.collectors.at(std::string(entry.name)).options};
  context.drm_users = std::move(drm_users);
  context.events = std::move(events);
  return context;
}

FleetSettings fleet_settings_of(const config::Config& config) {
  return {config.of<SamplingIntervals>(), config.of<DeviceLabels>(), config.of<DeviceOptions>()};
}

WorkloadSettings workload_settings_of(const config::Config& config, const Clock& clock, UserName user_name) {
  WorkloadSettings settings;
  if (config.of<WorkloadOptions>().enabled) {
    settings.book = std::make_shared<workloads::WorkloadBook>();
    settings.names = std::make_shared<workloads::NameBook>();
    settings.costs = std::make_shared<workloads::CostLedger>(clock);
    settings.lists = std::make_shared<workloads::ListRequest>();
  }
  settings.clock = &clock;
  settings.procfs = config.of<Paths>().procfs;
  settings.lists_every = config.of<SamplingIntervals>().normal;
  settings.processes = config.of<WorkloadOptions>().processes;
  settings.environment = config.of<WorkloadOptions>().environment;
  settings.user_name = std::move(user_name);
  return settings;
}

void forget_simulated(DeviceDirectory& directory, const config::Config& config) {
  std::vector<std::string> forgotten;
  for (const CollectorEntry& entry : builtin_collectors()) {
    if (entry.most_made_up == 0 || is_enabled(entry, config)) continue;
    for (const auto& [uuid, device] : directory.devices()) {
      if (device.collector == entry.name) forgotten.push_back(uuid);
    }
  }
  for (const std::string& uuid : forgotten) directory.forget(uuid);
}

bool replays(const config::Config& config) { return !config.of<pages::ReplaySettings>().file.empty(); }

void leave_machine(config::Config& config) {
  for (auto& [name, collector] : config.collectors) collector.enabled = options::Enabled::off;
  config.edit<WorkloadOptions>().enabled = false;
  config.edit<jobs::Settings>().enabled = false;
}

bool simulates(const config::Config& config) {
  if (replays(config)) return true;
  const auto enabled = enabled_collectors(config);
  return std::any_of(enabled.begin(), enabled.end(),
                     [](const auto* entry) { return entry->most_made_up > 0; });
}

bool has_bus(const config::Config& config) {
  if (replays(config)) return false;
  const auto enabled = enabled_collectors(config);
  return enabled.size() != 1 || enabled.front()->most_made_up == 0;
}

fdinfo::Scanner::Sources scan_sources_of(const Paths& paths) {
  fdinfo::Scanner::Sources sources;
  sources.procfs = paths.procfs;
  sources.sysfs = paths.sysfs;
  if (paths.procfs == "/proc") sources.own_pid = ::getpid();
  return sources;
}

}  // namespace gpumeter
