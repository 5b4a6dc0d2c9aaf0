#pragma once

#include <memory>
#include <string>
#include <vector>

#include "collectors/api/collector.hpp"
#include "collectors/attribution/names/known_users.hpp"
#include "collectors/attribution/workload_settings.hpp"
#include "config/load.hpp"
#include "config/schema.hpp"
#include "daemon/bus/adapters.hpp"
#include "daemon/cli/options.hpp"
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
SamplingIntervals intervals_of(const config::Config& config);
FleetSettings settings_of(const config::Config& config);
/// With a new book, where workloads are wanted.
WorkloadSettings workload_settings_of(const config::Config& config, UserName user_name);

/// load_config(), then the checks that need more than the file: the collectors' own keys, and whether the
/// users of `jobs.users` exist. Their uids are added to the list, so that it holds while the name service is
/// down. Users that could not be looked up pass; `notes` names them. Waits for the name service, for
/// KnownUsers::kPatience at most.
config::Loaded load_checked(const Options& options, const Clock& clock, jobs::KnownUsers& users,
                            std::vector<std::string>& notes);

/// A machine whose only collector is the simulated one has no bus: its devices are counted from 0.
bool has_bus(const config::Config& config);

/// What the bus shows; may hang in a driver.
Bus bus_of(const config::Config& config);

}  // namespace gpumeter
