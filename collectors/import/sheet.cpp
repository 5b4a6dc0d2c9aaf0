#include "collectors/import/sheet.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>

#include "base/text.hpp"

namespace gpumeter::import {
namespace {

constexpr Unit kUnits[] = {
    {"b/s", kBytesPerSecond, 1},
    {"gb/s", kBytesPerSecond, 1e9},
    {"gbps", kBytesPerSecond, 1e9},
    {"flops", kFlops, 1},
    {"gflops", kFlops, 1e9},
    {"tflops", kFlops, 1e12},
    {"ops", "operations_per_second", 1},
    {"giops", "operations_per_second", 1e9},
    {"gops", "operations_per_second", 1e9},
    {"tops", "operations_per_second", 1e12},
    {"s", kSeconds, 1},
    {"ms", kSeconds, 1e-3},
    {"us", kSeconds, 1e-6},
    {"usec", kSeconds, 1e-6},
    {"ns", kSeconds, 1e-9},
};

char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool same_word(std::string_view one, std::string_view other) noexcept {
  return std::ranges::equal(one, other, {}, lower, lower);
}

std::string number(double value) {
  constexpr int kDigits = 12;  // more than any file has; a scaled value gets no rounding error
  std::array<char, 32> text{};
  const auto end =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::general, kDigits).ptr;
  return {text.data(), end};
}

/// The value of a tag ends at a comma, and the tags at a bar. The daemon cuts a label at 64 bytes.
std::string tag_value(std::string_view raw) {
  constexpr std::size_t kMostBytes = 64;
  std::string text;
  for (const char c : raw) {
    const bool is_special = c == ',' || c == '|' || static_cast<unsigned char>(c) < ' ';
    const bool is_blank = is_special || c == ' ';
    if (!is_blank) text += c;
    if (is_blank && !text.empty() && text.back() != ' ') text += ' ';
  }
  if (text.ends_with(' ')) text.pop_back();
  return shortened(text, kMostBytes, raw);
}

}  // namespace

const Unit* find_unit(std::string_view name) noexcept {
  const auto* const found =
      std::ranges::find_if(kUnits, [&](const Unit& unit) { return same_word(unit.name, name); });
  return found == std::end(kUnits) ? nullptr : found;
}

GpuResults::Value& GpuResults::at(std::string_view metric, Tags tags, double value) {
  const auto same = [&](const Value& other) { return other.metric == metric && other.tags == tags; };
  const auto found = std::ranges::find_if(values_, same);
  if (found == values_.end() && has_too_many()) return values_.back();  // the file is refused
  return found == values_.end() ? values_.emplace_back(Value{metric, std::move(tags), value}) : *found;
}

void GpuResults::keep_best(std::string_view metric, Tags tags, double value) {
  Value& kept = at(metric, std::move(tags), value);
  kept.value = std::max(kept.value, value);
}

void GpuResults::flops(std::string_view dtype, std::string_view backend, double value) {
  keep_best("flops", {{"dtype", std::string(dtype)}, {"backend", tag_value(backend)}}, value);
}
void GpuResults::memory_bandwidth(std::string_view operation, double bytes_per_second) {
  keep_best("memory_bandwidth", {{"operation", std::string(operation)}}, bytes_per_second);
}
void GpuResults::transfer(std::string_view direction, double bytes_per_second) {
  keep_best("transfer", {{"direction", std::string(direction)}}, bytes_per_second);
}
void GpuResults::result(std::string_view test, std::string_view unit, double value) {
  at("result", {{"test", tag_value(test)}, {"unit", tag_value(unit)}}, value).value = value;
}
void GpuResults::best_result(std::string_view test, std::string_view unit, double value) {
  keep_best("result", {{"test", tag_value(test)}, {"unit", tag_value(unit)}}, value);
}

std::string GpuResults::lines(std::string_view device, std::string_view suite, double timestamp) const {
  std::string text;
  const auto add = [&](std::string_view metric, double value, const Tags& tags) {
    text.append("gpu.benchmark.").append(metric).append(":" + number(value) + "|g|#").append(device);
    text.append(",suite:").append(suite);
    for (const auto& [name, tag] : tags) text.append(",").append(name).append(":" + tag);
    text += '\n';
  };
  for (const Value& value : values_) add(value.metric, value.value, value.tags);
  if (failed) add("failed", *failed ? 1 : 0, {});
  add("timestamp", timestamp, {});
  return text;
}

std::string pci_address(std::string_view text) {
  std::array<unsigned, 3> parts{};  // domain, bus, device
  constexpr int kBase = 16;
  std::string_view rest = text;
  const auto colons = std::ranges::count(text, ':');
  if (colons < 1 || colons > 2) return {};
  for (std::size_t i = colons == 2 ? 0 : 1; i < parts.size(); ++i) {
    const auto part = take_number<unsigned>(rest, kBase);
    if (!part) return {};
    parts[i] = *part;
    if (i + 1 < parts.size()) {
      if (!rest.starts_with(':')) return {};
      rest.remove_prefix(1);
    }
  }
  unsigned function = 0;
  if (rest.starts_with('.')) {
    const auto part = parse_number<unsigned>(rest.substr(1), kBase);
    if (!part) return {};
    function = *part;
  } else if (!rest.empty()) {
    return {};
  }
  if (parts[1] > 0xFF || parts[2] > 0x1F || function > 7) return {};
  std::array<char, 32> address{};
  std::snprintf(address.data(), address.size(), "%04x:%02x:%02x.%u", parts[0], parts[1], parts[2], function);
  return address.data();
}

}  // namespace gpumeter::import
