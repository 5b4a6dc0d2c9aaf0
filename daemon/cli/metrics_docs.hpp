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

/// Returns the families alone, for Store::reserve().
std::vector<const MetricDescriptor*> catalogue_families(std::span<const CollectorEntry> collectors);

}  // namespace gpumeter
