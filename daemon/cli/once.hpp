#pragma once

#include <string>

#include "base/result.hpp"
#include "config/config.hpp"

namespace gpumeter {

/// Returns the output of --once: all tiers of every device read `passes` times, 1 s apart, as one page of
/// text 0.0.4. Uses no threads; if a driver hangs, the command hangs.
Result<std::string> page_once(const config::Config& config, int passes);

}  // namespace gpumeter
