#pragma once

#include <memory>
#include <string>
#include <vector>

#include "collectors/api/collector.hpp"
#include "collectors/attribution/workload_settings.hpp"
#include "config/config.hpp"
#include "config/schema.hpp"
#include "daemon/bus/adapters.hpp"
#include "daemon/fleet/settings.hpp"
#include "daemon/lane/device_session.hpp"

/// From the configuration's words to what the parts take.
namespace gpumeter {

std::vector<config::CollectorSchema> schemas_of(std::span<const CollectorEntry> collectors);

/// Whether the collector is switched on, by the configuration or by default.
bool is_enabled(const CollectorEntry& entry, const config::Config& config);

/// Those that are switched on.
std::vector<const CollectorEntry*> enabled_collectors(const config::Config& config);

CollectorContext context_of(const config::Config& config, const CollectorEntry& entry, const Clock& clock);
FleetSettings settings_of(const config::Config& config);
/// With a new book, where workloads are wanted.
WorkloadSettings workload_settings_of(const config::Config& config, UserName user_name);

/// Whether a collector with made-up devices is enabled.
bool simulates(const config::Config& config);

/// A machine whose only collector makes its devices up has no bus: its devices are counted from 0.
bool has_bus(const config::Config& config);

/// What the bus shows; may hang in a driver.
Bus bus_of(const config::Config& config);

}  // namespace gpumeter
