#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/option_schema.hpp"
#include "config/config.hpp"

namespace gpumeter::config {

/// The keys allowed under `collectors.<name>` in addition to `enabled`. The daemon passes the schemas in,
/// because this folder includes no collector.
struct CollectorSchema {
  std::string name;
  std::vector<OptionSchema> options;
};

using Schemas = std::span<const CollectorSchema>;

/// Returns the configuration of an empty file: the defaults, including those of every collector.
Config defaults(Schemas schemas);

}  // namespace gpumeter::config
