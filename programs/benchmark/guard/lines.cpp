#include <algorithm>
#include <array>
#include <charconv>

#include "base/text.hpp"
#include "programs/benchmark/guard/supervise.hpp"

namespace gpumeter::benchmark {
namespace {

constexpr std::string_view kLast = "end\n";

std::string exact(double value) {
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

/// A field: tabs and line ends separate.
std::string plain(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return c == '\t' || c == '\n' || c == '\r'; }, ' ');
  return text;
}

std::optional<Measurement> measurement_of(std::string_view fields) {
  const auto quantity = kQuantityNames.find(take_until(fields, '\t'));
  Measurement made;
  made.kind = take_until(fields, '\t');
  made.backend = take_until(fields, '\t');
  const auto value = parse_number<double>(take_until(fields, '\t'));
  const auto deviation = parse_number<double>(take_until(fields, '\t'));
  const auto runs = parse_number<int>(fields);
  if (!quantity || !value || !deviation || !runs) return std::nullopt;
  made.quantity = *quantity;
  made.value = *value;
  made.deviation = *deviation;
  made.runs = *runs;
  return made;
}

bool take_line(Outcome& outcome, std::string_view line) {
  const std::string_view word = take_until(line, '\t');
  if (word == "failure") return outcome.failures.emplace_back(line), true;
  if (word == "note") return outcome.notes.emplace_back(line), true;
  if (word == "fact") {
    const std::string_view name = take_until(line, '\t');
    return outcome.facts.push_back({std::string(name), std::string(line)}), true;
  }
  const auto measurement = word == "measurement" ? measurement_of(line) : std::nullopt;
  if (measurement) outcome.measurements.push_back(*measurement);
  return measurement.has_value();
}

}  // namespace

std::string to_lines(const Outcome& outcome) {
  std::string text;
  for (const Measurement& each : outcome.measurements)
    text += "measurement\t" + std::string(kQuantityNames.of(each.quantity)) + '\t' + plain(each.kind) + '\t' +
            plain(each.backend) + '\t' + exact(each.value) + '\t' + exact(each.deviation) + '\t' +
            std::to_string(each.runs) + '\n';
  for (const std::string& each : outcome.failures) text += "failure\t" + plain(each) + '\n';
  for (const std::string& each : outcome.notes) text += "note\t" + plain(each) + '\n';
  for (const Fact& each : outcome.facts)
    text += "fact\t" + plain(each.name) + '\t' + plain(each.value) + '\n';
  return text.append(kLast);
}

std::optional<Outcome> from_lines(std::string_view text) {
  if (!text.ends_with(kLast)) return std::nullopt;
  text.remove_suffix(kLast.size());
  Outcome outcome;
  while (!text.empty()) {
    if (!take_line(outcome, take_until(text, '\n'))) return std::nullopt;
  }
  return outcome;
}

}  // namespace gpumeter::benchmark
