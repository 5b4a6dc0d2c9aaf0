#pragma once

#include <span>

#include "collectors/api/collector.hpp"

namespace gpumeter {

/// Every collector there is: one explicit table, no registration before main.
std::span<const CollectorEntry> builtin_collectors() noexcept;

}  // namespace gpumeter
