#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "config/config.hpp"

namespace gpumeter::config {

/// A key that one collector has of its own, beside `enabled`.
struct OptionSchema {
  enum class Kind : std::uint8_t { text, integer, number, duration, list };
  std::string name;
  Kind kind = Kind::text;
  std::string fallback;  ///< the default as the file would spell it; an empty list is ""
  std::string help;
};

/// What may stand under `collectors.<name>`. Handed in by the daemon: this folder knows no collector.
struct CollectorSchema {
  std::string name;
  std::vector<OptionSchema> options;
};

using Schemas = std::span<const CollectorSchema>;

/// What an empty file means: the defaults, and every known collector with its own.
Config defaults(Schemas schemas);

}  // namespace gpumeter::config
