#pragma once

#include <string>

#include "config/config.hpp"

namespace gpumeter {

/// What --list-devices prints: one line a device, and below what cannot be read and why.
std::string device_list(const config::Config& config);

}  // namespace gpumeter
