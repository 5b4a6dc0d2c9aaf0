#pragma once

#include <string>

#include "config/schema.hpp"

namespace gpumeter::config {

/// Returns docs/configuration.md: every key with its type, default and whether a reload applies it.
std::string configuration_markdown(Schemas schemas);

}  // namespace gpumeter::config
