#pragma once

#include <string>

#include "config/config.hpp"

namespace gpumeter {

/// What --list-devices prints: one line a device, one for each source that it is or could be read from, and
/// below what cannot be read at all and why.
std::string device_list(const config::Config& config);

}  // namespace gpumeter
