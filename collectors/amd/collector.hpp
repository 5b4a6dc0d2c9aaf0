#pragma once

#include <memory>
#include <span>

#include "collectors/amd/card.hpp"
#include "collectors/api/collector.hpp"

namespace gpumeter::amd {

inline constexpr CollectorOption kAmdOptions[] = {
    {"ids_file", CollectorOption::Kind::text, "/usr/share/libdrm/amdgpu.ids",
     "libdrm's list of marketing names, by PCI device and revision."},
    {"links", CollectorOption::Kind::text, "sum",
     "xGMI series. sum: totals of all links of a GPU; each: also a set per link."},
    {"events", CollectorOption::Kind::text, "none",
     "kfd: counts resets, VM faults and thermal throttling by the compute driver's events. The daemon then "
     "has "
     "/dev/kfd open until it ends, and the driver refuses to change partitions or to be unloaded."},
};

std::optional<OptionProblem> check_amd(const CollectorContext& context);
Result<std::unique_ptr<Collector>> open_amd(const CollectorContext& context);

/// Radeon, APU and Instinct, from the sysfs files of amdgpu (and of radeon for old cards); no library of
/// AMD's. Each card's own firmware serves its files, so any number of cards is read in parallel.
inline constexpr CollectorEntry kAmd = {
    .name = "amd",
    .enabled_by_default = true,
    .max_parallel = 0,
    .options = kAmdOptions,
    .metrics = amd_row_docs,
    .check = check_amd,
    .open = open_amd,
};

}  // namespace gpumeter::amd
