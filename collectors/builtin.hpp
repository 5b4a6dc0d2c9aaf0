#pragma once

#include <span>

#include "collectors/api/collector.hpp"

namespace gpumeter {

/// All collectors in one explicit table; nothing registers itself before main.
std::span<const CollectorEntry> builtin_collectors() noexcept;

}  // namespace gpumeter
