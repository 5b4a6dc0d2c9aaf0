#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/option_schema.hpp"
#include "config/config.hpp"

namespace gpumeter::config {

/// What may stand under `collectors.<name>` besides `enabled`. The daemon hands these in, since this folder
/// includes no collector.
struct CollectorSchema {
  std::string name;
  std::vector<OptionSchema> options;
};

using Schemas = std::span<const CollectorSchema>;

/// The meaning of an empty file: the defaults, and every collector with its own.
Config defaults(Schemas schemas);

}  // namespace gpumeter::config
