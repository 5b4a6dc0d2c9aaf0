#pragma once

#include <memory>
#include <string>
#include <vector>

#include "collectors/api/collector.hpp"
#include "collectors/attribution/workload_settings.hpp"
#include "config/config.hpp"
#include "config/schema.hpp"
#include "daemon/bus/adapters.hpp"
#include "daemon/drm/scans.hpp"
#include "daemon/fleet/device_directory.hpp"
#include "daemon/fleet/settings.hpp"
#include "daemon/lane/device_session.hpp"
#include "daemon/names/allocations.hpp"
#include "exporter/text/selection.hpp"

/// Converts the configuration to the settings of the parts.
namespace gpumeter {

std::vector<config::CollectorSchema> schemas_of(std::span<const CollectorEntry> collectors);

/// True if the collector is enabled, by the configuration or by default.
bool is_enabled(const CollectorEntry& entry, const config::Config& config);

std::vector<const CollectorEntry*> enabled_collectors(const config::Config& config);

CollectorContext context_of(const config::Config& config, const CollectorEntry& entry, const Clock& clock,
                            std::shared_ptr<DrmUsers> drm_users = nullptr);
/// The configuration's patterns are valid.
PageSelection page_selection_of(const config::Config& config);
FleetSettings settings_of(const config::Config& config);
/// Creates a new book and ledger if workloads are enabled. `clock` must outlive them.
WorkloadSettings workload_settings_of(const config::Config& config, const Clock& clock, UserName user_name);

Allocations::Settings allocation_settings_of(const config::Config& config);

/// Drops the devices of a simulator that is not enabled. Their indexes are then free for real devices.
void forget_simulated(DeviceDirectory& directory, const config::Config& config);

/// True if a collector with simulated devices is enabled.
bool simulates(const config::Config& config);

/// Returns false if the only enabled collector simulates its devices; they are then numbered from 0.
bool has_bus(const config::Config& config);

/// What a scanner of DRM clients reads.
fdinfo::Scanner::Sources scan_sources_of(const config::Paths& paths);

/// The scanner of DRM clients. It does not look at the daemon itself.
std::shared_ptr<DrmScans> make_drm_scans(const config::Paths& paths, const Clock& clock);

/// Returns the contents of the PCI bus; may hang in a driver.
Bus bus_of(const config::Config& config);

}  // namespace gpumeter
