#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/paths.hpp"
#include "collectors/api/collector.hpp"
#include "collectors/attribution/workload_settings.hpp"
#include "collectors/sources/fdinfo/scanner.hpp"
#include "config/config.hpp"
#include "daemon/fleet/device_directory.hpp"
#include "daemon/fleet/settings.hpp"

/// Converts the configuration to the settings of the parts.
namespace gpumeter {

/// The keys of the configuration: the table of all sections, and the collectors' own options.
config::Schema schema_of(std::span<const CollectorEntry> collectors);
/// The same with the built-in collectors.
const config::Schema& schema();

/// True if the collector is enabled, by the configuration or by default.
bool is_enabled(const CollectorEntry& entry, const config::Config& config);

std::vector<const CollectorEntry*> enabled_collectors(const config::Config& config);

CollectorContext context_of(const config::Config& config, const CollectorEntry& entry, const Clock& clock,
                            std::shared_ptr<DrmUsers> drm_users = nullptr,
                            std::shared_ptr<EventLedger> events = nullptr);
FleetSettings fleet_settings_of(const config::Config& config);
/// Creates a new book and ledger if workloads are enabled. `clock` must outlive them.
WorkloadSettings workload_settings_of(const config::Config& config, const Clock& clock, UserName user_name);

/// Drops the devices of a simulator that is not enabled. Their indexes are then free for real devices.
void forget_simulated(DeviceDirectory& directory, const config::Config& config);

/// True if a recording replaces this machine.
bool replays(const config::Config& config);

/// Turns off the collectors, workloads and jobs of this machine.
void leave_machine(config::Config& config);

/// True if a collector with simulated devices is enabled, or a recording is shown.
bool simulates(const config::Config& config);

/// Returns false if a recording is shown, or if the only enabled collector simulates its devices; they are
/// then numbered from 0.
bool has_bus(const config::Config& config);

/// What a scanner of DRM clients reads: not the daemon itself.
fdinfo::Scanner::Sources scan_sources_of(const Paths& paths);

}  // namespace gpumeter
