#pragma once

#include <memory>

#include "collectors/api/collector.hpp"
#include "collectors/simulated/metrics.hpp"
#include "collectors/simulated/options.hpp"

namespace gpumeter::simulated {

/// Opens simulated GPUs, for trials without hardware and for tests that compare with the truth (see Model).
/// Deterministic: the same options give the same numbers at the same time since the opening, at which the
/// clock is first read. An Error names the option.
Result<std::unique_ptr<Collector>> open_simulated(const CollectorContext& context);
std::optional<OptionProblem> check_simulated(const CollectorContext& context);

/// Off by default, so that simulated numbers appear only on request.
inline constexpr CollectorEntry kSimulated = {
    .name = "simulated",
    .enabled_by_default = false,
    .max_parallel = 0,
    .options = kOptions,
    .metrics = simulated_row_docs,
    .check = check_simulated,
    .open = open_simulated,
    .most_made_up = kMostDevices,
};

}  // namespace gpumeter::simulated
