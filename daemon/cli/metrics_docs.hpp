#pragma once

#include <span>
#include <string>
#include <vector>

#include "collectors/api/collector.hpp"

namespace gpumeter {

/// Every family that this binary can serve, from the tables themselves: name, type, unit, help, and where
/// each collector gets it from. docs/metrics.md is the markdown.
std::string metrics_markdown(std::span<const CollectorEntry> collectors);

/// One line a family: name, type, unit, help, separated by tabs.
std::string metrics_text(std::span<const CollectorEntry> collectors);

/// The families alone: what Store::reserve() takes before a source outside the process declares its own. The
/// tables of all vendors take 0.6 MiB to go through, so nobody does at start.
std::vector<const MetricDescriptor*> catalogue_families(std::span<const CollectorEntry> collectors);

}  // namespace gpumeter
