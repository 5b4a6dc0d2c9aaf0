#pragma once

#include <string>
#include <vector>

#include "config/codec.hpp"
#include "config/schema.hpp"

namespace gpumeter::config {

std::vector<std::string> collector_names(Schemas schemas);

/// `enabled` and the collector's own.
std::vector<std::string> key_names(const CollectorSchema& schema);

/// Reads one key of `collectors.<name>`, which must be one of key_names().
Complaint read_collector_key(const Node& node, const CollectorSchema& schema, CollectorConfig& config);

std::string_view type_words(OptionSchema::Kind kind) noexcept;

}  // namespace gpumeter::config
