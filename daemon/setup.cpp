#include "daemon/setup.hpp"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "collectors/builtin.hpp"
#include "collectors/sources/pci_scan.hpp"

namespace gpumeter {

std::vector<config::CollectorSchema> schemas_of(std::span<const CollectorEntry> collectors) {
  std::vector<config::CollectorSchema> schemas;
  for (const CollectorEntry& collector : collectors) {
    schemas.push_back({std::string(collector.name), {collector.options.begin(), collector.options.end()}});
  }
  return schemas;
}

bool is_enabled(const CollectorEntry& entry, const config::Config& config) {
  const config::Enabled wish = config.collectors.at(std::string(entry.name)).enabled;
  return wish == config::Enabled::automatic ? entry.enabled_by_default : wish == config::Enabled::on;
}

std::vector<const CollectorEntry*> enabled_collectors(const config::Config& config) {
  std::vector<const CollectorEntry*> enabled;
  for (const CollectorEntry& entry : builtin_collectors()) {
    if (is_enabled(entry, config)) enabled.push_back(&entry);
  }
  return enabled;
}

CollectorContext context_of(const config::Config& config, const CollectorEntry& entry, const Clock& clock,
                            std::shared_ptr<DrmUsers> drm_users) {
  CollectorContext context{config.paths.sysfs, config.paths.procfs, &clock,
                           config.collectors.at(std::string(entry.name)).options};
  context.drm_users = std::move(drm_users);
  return context;
}

PageSelection page_selection_of(const config::Config& config) {
  const auto compiled = [](const std::vector<std::string>& texts) {
    std::vector<SeriesPattern> patterns;
    for (const std::string& text : texts) {
      if (Result<SeriesPattern> pattern = SeriesPattern::parse(text)) patterns.push_back(*std::move(pattern));
    }
    return patterns;
  };
  const config::Metrics& metrics = config.metrics;
  return {metrics.detail == config::MetricsDetail::full, compiled(metrics.include),
          compiled(metrics.exclude)};
}

FleetSettings settings_of(const config::Config& config) {
  const config::Sampling& sampling = config.sampling;
  return {{sampling.fast, sampling.normal, sampling.slow},
          config.device_labels,
          config.devices.names,
          config.devices.forget};
}

WorkloadSettings workload_settings_of(const config::Config& config, const Clock& clock, UserName user_name) {
  WorkloadSettings settings;
  if (config.workloads.enabled) {
    settings.book = std::make_shared<workloads::WorkloadBook>();
    settings.names = std::make_shared<workloads::NameBook>();
    settings.costs = std::make_shared<workloads::CostLedger>(clock);
    settings.lists = std::make_shared<workloads::ListRequest>();
  }
  settings.clock = &clock;
  settings.procfs = config.paths.procfs;
  settings.processes = config.workloads.processes;
  settings.user_name = std::move(user_name);
  return settings;
}

Allocations::Settings allocation_settings_of(const config::Config& config) {
  Allocations::Settings settings;
  const config::Allocations& own = config.allocations;
  settings.slurm = {own.slurm, own.slurm_gpus, config.paths.sysfs};
  settings.manual = own.manual;
  settings.held = own.held;
  settings.sysfs = config.paths.sysfs;
  settings.cgroups = config.paths.sysfs + "/fs/cgroup";
  constexpr double kPercent = 0.01;
  settings.meter.idle_below = own.idle_percent * kPercent;
  // Lists of processes are read at the interval `normal`.
  constexpr int kLists = 3;
  auto& of_workload = settings.meter.of_workload;
  of_workload = std::max<Nanoseconds>(of_workload, kLists * Nanoseconds(config.sampling.normal));
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

bool simulates(const config::Config& config) {
  const auto enabled = enabled_collectors(config);
  return std::any_of(enabled.begin(), enabled.end(),
                     [](const auto* entry) { return entry->most_made_up > 0; });
}

bool has_bus(const config::Config& config) {
  const auto enabled = enabled_collectors(config);
  return enabled.size() != 1 || enabled.front()->most_made_up == 0;
}

fdinfo::Scanner::Sources scan_sources_of(const config::Paths& paths) {
  fdinfo::Scanner::Sources sources;
  sources.procfs = paths.procfs;
  sources.sysfs = paths.sysfs;
  if (paths.procfs == "/proc") sources.own_pid = ::getpid();
  return sources;
}

std::shared_ptr<DrmScans> make_drm_scans(const config::Paths& paths, const Clock& clock) {
  return std::make_shared<DrmScans>(scan_sources_of(paths), clock);
}

Bus bus_of(const config::Config& config) {
  Bus bus;
  if (!has_bus(config)) return bus;
  const SystemClock clock;
  pci::Scan scan("bus", clock);
  bus.host = look_at_host(config.paths.sysfs);
  for (const pci::Function& adapter : scan.adapters(config.paths.sysfs).adapters) bus.add(adapter);
  return bus;
}

}  // namespace gpumeter
