#pragma once

#include <string>

#include "config/schema.hpp"

namespace gpumeter::config {

/// docs/configuration.md: every key with its type, default and whether a reload takes it on.
std::string configuration_markdown(Schemas schemas);

}  // namespace gpumeter::config
