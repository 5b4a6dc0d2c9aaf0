#pragma once

#include <span>
#include <string>
#include <vector>

#include "collectors/api/collector.hpp"

namespace gpumeter {

/// Returns every family that this binary can serve, from the tables: name, type, unit, help, and each
/// collector's source. docs/metrics.md is the markdown.
std::string metrics_markdown(std::span<const CollectorEntry> collectors);

/// Returns one line for each family: name, type, unit, help, separated by tabs.
std::string metrics_text(std::span<const CollectorEntry> collectors);

/// Returns the families alone, for Store::reserve() before a source outside the process declares its own.
/// Walking the tables of all vendors takes 0.6 MiB, so the daemon does not call this at the start.
std::vector<const MetricDescriptor*> catalogue_families(std::span<const CollectorEntry> collectors);

/// Returns the table of conditions and the XID catalogue; docs/conditions.md is this text.
std::string conditions_markdown();

}  // namespace gpumeter
