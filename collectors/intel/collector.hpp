#pragma once

#include <memory>
#include <optional>

#include "collectors/api/collector.hpp"
#include "collectors/intel/card.hpp"

namespace gpumeter::intel {

inline constexpr CollectorOption kIntelOptions[] = {
    {"ids_file", CollectorOption::Kind::text, "/usr/share/misc/pci.ids",
     "List of PCI IDs, for the names of Intel GPUs."},
};

Result<std::unique_ptr<Collector>> open_intel(const CollectorContext& context);

/// Arc, Data Center GPU and graphics in processors, from the drivers i915 and xe: sysfs, events (PMU) and
/// queries; no library of Intel's. Any number of cards is read in parallel.
inline constexpr CollectorEntry kIntel = {
    .name = "intel",
    .enabled_by_default = true,
    .max_parallel = 0,
    .options = kIntelOptions,
    .metrics = intel_row_docs,
    .check = [](const CollectorContext&) -> std::optional<OptionProblem> { return std::nullopt; },
    .open = open_intel,
};

}  // namespace gpumeter::intel
