#include "tests/fakes/nvml/value_reader.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "tests/fakes/nvml/scenario_file.hpp"

namespace gpumeter::fake_nvml {
namespace {

Number number_of(const YAML::Node& node, const char* what) {
  const Value value = node.IsScalar() ? parse_scalar(node.Scalar()) : Value{};
  if (!value.is_number) throw std::runtime_error(std::string(what) + ": a number is needed");
  return value.number;
}

Number number_or(const YAML::Node& node, const char* key, Number otherwise) {
  return node[key] ? number_of(node[key], key) : otherwise;
}

Value bits(const YAML::Node& words) {
  unsigned long long sum = 0;
  for (const auto& word : words) sum |= static_cast<unsigned long long>(parse_scalar(word.Scalar()).number);
  return Value{.number = static_cast<Number>(sum), .is_number = true};
}

ValueOverTime::Square square(const YAML::Node& node) {
  return {number_of(node["period"], "period"), number_of(node["duty"], "duty"),
          number_of(node["high"], "high"), number_or(node, "low", 0)};
}

YAML::Node below(const YAML::Node& node, const std::string& path) {
  const std::size_t dot = path.find('.');
  const YAML::Node next = node[path.substr(0, dot)];
  return dot == std::string::npos || !next.IsDefined() ? next : below(next, path.substr(dot + 1));
}

}  // namespace

bool is_word_list(const YAML::Node& node) {
  return node.IsSequence() && std::all_of(node.begin(), node.end(), [](const YAML::Node& item) {
           return item.IsScalar() && is_word(item.Scalar());
         });
}

ValueOverTime ValueReader::read(const YAML::Node& node, int depth) const {
  if (depth > 8) throw std::runtime_error("same_as goes in a circle");
  if (node.IsScalar()) return ValueOverTime(parse_scalar(node.Scalar()));
  if (is_word_list(node)) return ValueOverTime(bits(node));
  if (!is_value_form(node)) throw std::runtime_error("not a value");
  if (node["same_as"]) return read(lookup(node["same_as"].Scalar()), depth + 1);
  if (node["error"]) return ValueOverTime(Value{.error = error_of(node["error"].Scalar())});
  if (node["rate"]) {
    return ValueOverTime(ValueOverTime::Rate{number_or(node, "from", 0), number_of(node["rate"], "rate"),
                                             static_cast<unsigned>(number_or(node, "bits", 0))});
  }
  if (node["square"]) return ValueOverTime(square(node["square"]));
  if (node["steps"]) return ValueOverTime(steps(node["steps"], depth));
  auto inner = std::make_shared<const ValueOverTime>(read(node["integral_of"], depth + 1));
  return ValueOverTime(
      ValueOverTime::Integral{std::move(inner), number_or(node, "scale", 1), number_or(node, "from", 0)});
}

std::vector<ValueOverTime::Step> ValueReader::steps(const YAML::Node& node, int depth) const {
  if (!node.IsSequence() || node.size() == 0)
    throw std::runtime_error("steps: a list [[SECONDS, VALUE], ...]");
  std::vector<ValueOverTime::Step> result;
  for (const auto& step : node) {
    if (!step.IsSequence() || step.size() != 2) throw std::runtime_error("steps: each is [SECONDS, VALUE]");
    result.push_back({step[0].as<double>(), read(step[1], depth + 1)});
    if (result.size() > 1 && result[result.size() - 2].since > result.back().since) {
      throw std::runtime_error("steps: not in order of time");
    }
  }
  return result;
}

YAML::Node ValueReader::lookup(const std::string& path) const {
  const YAML::Node found = below(root_, path);
  if (!found.IsDefined()) throw std::runtime_error("same_as: there is no " + path);
  return found;
}

}  // namespace gpumeter::fake_nvml
