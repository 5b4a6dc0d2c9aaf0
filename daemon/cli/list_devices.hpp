#pragma once

#include <string>

#include "config/config.hpp"

namespace gpumeter {

/// Returns the output of --list-devices: one line for each device and one for each of its sources, readable
/// or not. Below them, notes explain each failure.
std::string device_list(const config::Config& config);

}  // namespace gpumeter
