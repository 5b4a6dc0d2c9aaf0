#include "config/collector_keys.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace gpumeter::config {
namespace {

using Kind = OptionSchema::Kind;

Complaint check_scalar(const Node& node, Kind kind) {
  std::string text;
  Duration duration;
  switch (kind) {
    case Kind::integer:
      return check_integer(node);
    case Kind::number:
      return check_number(node);
    case Kind::duration:
      return read(node, duration);
    case Kind::text:
    case Kind::list:
      break;
  }
  return read(node, text);
}

std::vector<std::string> fallback_of(const OptionSchema& option) {
  if (option.kind == Kind::list && option.fallback.empty()) return {};
  return {option.fallback};
}

}  // namespace

Config defaults(Schemas schemas) {
  Config config;
  for (const CollectorSchema& schema : schemas) {
    CollectorConfig& collector = config.collectors[schema.name];
    for (const OptionSchema& option : schema.options) collector.options[option.name] = fallback_of(option);
  }
  return config;
}

std::vector<std::string> collector_names(Schemas schemas) {
  std::vector<std::string> names;
  std::transform(schemas.begin(), schemas.end(), std::back_inserter(names),
                 [](const CollectorSchema& schema) { return schema.name; });
  return names;
}

std::vector<std::string> key_names(const CollectorSchema& schema) {
  std::vector<std::string> names = {"enabled"};
  std::transform(schema.options.begin(), schema.options.end(), std::back_inserter(names),
                 [](const OptionSchema& option) { return option.name; });
  return names;
}

Complaint read_collector_key(const Node& node, const CollectorSchema& schema, CollectorConfig& config) {
  if (node.kind == Node::Kind::null) return std::nullopt;
  if (node.key == "enabled") return read(node, config.enabled);
  const auto option = std::find_if(schema.options.begin(), schema.options.end(),
                                   [&node](const OptionSchema& o) { return o.name == node.key; });
  std::vector<std::string>& values = config.options[node.key];
  if (option->kind == Kind::list) return read(node, values);
  const Complaint complaint = check_scalar(node, option->kind);
  if (!complaint) values = {node.text};
  return complaint;
}

std::string_view type_words(Kind kind) noexcept {
  constexpr std::string_view kWords[] = {"text", "whole number", "number", "duration", "list of texts"};
  return kWords[static_cast<std::size_t>(kind)];
}

}  // namespace gpumeter::config
