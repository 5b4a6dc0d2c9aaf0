#pragma once

#include <string>

#include "base/result.hpp"
#include "config/config.hpp"

namespace gpumeter {

/// What --once prints: all tiers of every device read `passes` times, one second apart, as one page of text
/// 0.0.4. Without threads, so a driver that hangs makes it hang.
Result<std::string> page_once(const config::Config& config, int passes);

}  // namespace gpumeter
