#pragma once

#include <memory>
#include <span>

#include "collectors/amd/metrics.hpp"
#include "collectors/api/collector.hpp"

namespace gpumeter::amd {

inline constexpr CollectorOption kAmdOptions[] = {
    {"ids_file", CollectorOption::Kind::text, "/usr/share/libdrm/amdgpu.ids",
     "libdrm's list of marketing names, by PCI device and revision."},
};

Result<std::unique_ptr<Collector>> open_amd(const CollectorContext& context);

/// Radeon, APU and Instinct, by what amdgpu (and of old cards radeon) shows in sysfs; no library of AMD's.
/// A card's files are served by its own firmware, so any number of cards is read at the same time.
inline constexpr CollectorEntry kAmd = {
    .name = "amd",
    .enabled_by_default = true,
    .max_parallel = 0,
    .options = kAmdOptions,
    .metrics = amd_row_docs,
    .check = [](const CollectorContext&) -> std::optional<OptionProblem> { return std::nullopt; },
    .open = open_amd,
};

}  // namespace gpumeter::amd
