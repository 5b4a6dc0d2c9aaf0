#pragma once

#include <span>

#include "collectors/api/collector.hpp"

namespace gpumeter {

/// Every collector there is: one explicit table, no registration before main.
std::span<const CollectorEntry> builtin_collectors() noexcept;

/// How many GPUs can be simulated at the most.
unsigned most_simulated_devices() noexcept;

}  // namespace gpumeter
