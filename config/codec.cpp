#include "config/codec.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "base/duration.hpp"
#include "base/text.hpp"

namespace gpumeter::config {
namespace {

/// Parses an unquoted scalar as a number. A quoted scalar is a text.
template <class Number>
std::optional<Number> number_of(const Node& node) {
  if (node.kind != Node::Kind::scalar || node.quoted) return std::nullopt;
  return parse_number<Number>(node.text);
}

/// Returns the items between brackets, separated by commas.
template <class Items, class Text>
std::string listed(char open, const Items& items, Text text_of, char close) {
  std::string text(1, open);
  for (const auto& item : items) {
    const std::string shown = text_of(item);
    if (text.size() > 1 && !shown.empty()) text += ", ";
    text += shown;
  }
  return text + close;
}

constexpr std::string_view kNever = "never";

/// The values of the label `vendor`.
const std::vector<std::string> kVendors = {"amd",       "apple",       "arm",     "aws",
                                           "broadcom",  "intel",       "nvidia",  "qualcomm",
                                           "simulated", "tenstorrent", "vivante", "other"};

bool DeviceLabels::*label_of(const Node& node) {
  for (const DeviceLabelName& label : kDeviceLabelNames) {
    if (node.kind == Node::Kind::scalar && label.name == node.text) return label.member;
  }
  return nullptr;
}

std::vector<std::string> label_names() {
  std::vector<std::string> names;
  for (const DeviceLabelName& label : kDeviceLabelNames) names.emplace_back(label.name);
  return names;
}

}  // namespace

Complaint must_be(const std::string& what, const Node& node) {
  return "must be " + what + ", not " + found(node);
}

std::string printable(std::string_view text) {
  constexpr std::size_t kLongest = 80;
  std::string result(first_bytes(text, kLongest));
  if (text.size() > kLongest) result += "...";
  for (char& c : result) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return result;
}

std::string found(const Node& node) {
  switch (node.kind) {
    case Node::Kind::null:
      return "empty";
    case Node::Kind::sequence:
      return "a list";
    case Node::Kind::map:
      return "a map of keys";
    case Node::Kind::scalar:
      break;
  }
  return (node.quoted ? "the text \"" : "\"") + printable(node.text) + "\"";
}

Complaint read(const Node& node, std::string& value) {
  if (node.kind != Node::Kind::scalar) return must_be("a text", node);
  if (node.text.find('\0') != std::string::npos) return "must be a text without NUL characters";
  value = node.text;
  return std::nullopt;
}

Complaint read(const Node& node, unsigned& value) {
  constexpr std::int64_t kMost = 1'000'000;
  const auto number = number_of<std::int64_t>(node);
  if (!number || *number < 0 || *number > kMost) {
    return must_be("a whole number from 0 to " + std::to_string(kMost), node);
  }
  value = static_cast<unsigned>(*number);
  return std::nullopt;
}

Complaint read(const Node& node, bool& value) {
  const bool is_word = node.kind == Node::Kind::scalar && !node.quoted;
  if (!is_word || (node.text != "true" && node.text != "false")) return must_be("true or false", node);
  value = node.text == "true";
  return std::nullopt;
}

Complaint read(const Node& node, Duration& value) {
  const bool is_scalar = node.kind == Node::Kind::scalar;
  if (const auto duration = is_scalar ? parse_duration(node.text) : std::nullopt) {
    value = *duration;
    return std::nullopt;
  }
  if (is_scalar && parse_number<double>(node.text)) {
    const std::string text = printable(node.text);
    return "must have a unit, such as " + text + "s or " + text + "ms, not be the bare number " + text;
  }
  return must_be("a duration such as 500ms, 10s or 1h30m", node);
}

Complaint read(const Node& node, std::vector<std::string>& value) {
  if (node.kind != Node::Kind::sequence) return must_be("a list, such as [\"...\"]", node);
  std::vector<std::string> texts(node.children.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (const auto complaint = read(node.children[i], texts[i])) {
      return "item " + std::to_string(i + 1) + " " + *complaint;
    }
  }
  value = std::move(texts);
  return std::nullopt;
}

Complaint read(const Node& node, std::map<std::string, std::string>& value) {
  if (node.kind != Node::Kind::map) return must_be("a map of keys to texts", node);
  std::map<std::string, std::string> texts;
  for (const Node& child : node.children) {
    if (const auto complaint = read(child, texts[child.key])) {
      return "the value of \"" + printable(child.key) + "\" " + *complaint;
    }
  }
  value = std::move(texts);
  return std::nullopt;
}

Complaint read(const Node& node, DeviceLabels& value) {
  const std::string words = "a list of " + enumerate(label_names(), "or");
  if (node.kind != Node::Kind::sequence) return must_be(words, node);
  DeviceLabels labels{.vendor = false, .model = false};
  for (const Node& item : node.children) {
    bool DeviceLabels::*const label = label_of(item);
    if (label == nullptr) return "must be " + words + "; gpu and uuid are always present; not " + found(item);
    if (labels.*label) return "must list each label once, not " + found(item) + " twice";
    labels.*label = true;
  }
  value = labels;
  return std::nullopt;
}

Complaint read(const Node& node, std::optional<Duration>& value) {
  value.reset();
  if (node.kind == Node::Kind::scalar && node.text == kNever) return std::nullopt;
  const Complaint complaint = read(node, value.emplace());
  if (complaint && complaint->starts_with("must be a duration")) {
    return must_be("never or a duration such as 500ms, 10s or 1h30m", node);
  }
  return complaint;
}

Complaint read(const Node& node, ExpectedDevices& value) {
  std::map<std::string, unsigned> counts;
  const bool is_map = node.kind == Node::Kind::map;
  if (!is_map && read(node, counts[std::string(ExpectedDevices::kAnyVendor)])) {
    return must_be("a whole number, or a map of numbers by vendor such as {nvidia: 8}", node);
  }
  for (const Node& child : node.children) {
    if (std::ranges::find(kVendors, child.key) == kVendors.end()) {
      return "must name vendors out of " + enumerate(kVendors, "and") + ", not \"" + printable(child.key) +
             "\"";
    }
    if (const auto complaint = read(child, counts[child.key])) {
      return "the value of \"" + printable(child.key) + "\" " + *complaint;
    }
  }
  value.by_vendor = std::move(counts);
  return std::nullopt;
}

Complaint read(const Node& node, OptionSchema::Kind kind, std::vector<std::string>& values) {
  using Kind = OptionSchema::Kind;
  if (kind == Kind::list) return read(node, values);
  std::string text;
  Duration duration;
  Complaint complaint;
  if (kind == Kind::integer && !number_of<std::int64_t>(node)) complaint = must_be("a whole number", node);
  if (kind == Kind::number && !std::isfinite(number_of<double>(node).value_or(INFINITY))) {
    complaint = must_be("a number", node);
  }
  if (kind == Kind::duration) complaint = read(node, duration);
  if (kind == Kind::text) complaint = read(node, text);
  if (!complaint) values = {node.text};
  return complaint;
}

std::string show(const std::string& value) { return value.empty() ? "\"\"" : value; }
std::string show(unsigned value) { return std::to_string(value); }
std::string show(bool value) { return value ? "true" : "false"; }
std::string show(Duration value) { return duration_text(value); }

std::string show(const std::vector<std::string>& value) { return listed('[', value, gpumeter::quoted, ']'); }

std::string show(const std::map<std::string, std::string>& value) {
  return listed(
      '{', value,
      [](const auto& item) { return gpumeter::quoted(item.first) + ": " + gpumeter::quoted(item.second); },
      '}');
}

std::string show(const DeviceLabels& value) {
  return listed(
      '[', kDeviceLabelNames,
      [&value](const auto& label) { return std::string(value.*label.member ? label.name : ""); }, ']');
}

std::string show(std::optional<Duration> value) { return value ? show(*value) : std::string(kNever); }

std::string show(const ExpectedDevices& value) {
  const auto of_machine = value.by_vendor.find(std::string(ExpectedDevices::kAnyVendor));
  if (of_machine != value.by_vendor.end()) return show(of_machine->second);
  return listed(
      '{', value.by_vendor, [](const auto& item) { return item.first + ": " + show(item.second); }, '}');
}

std::string type_words(const DeviceLabels&) {
  std::string words = "list of ";
  for (const DeviceLabelName& label : kDeviceLabelNames) {
    words.append(&label == kDeviceLabelNames ? "" : ", ").append(label.name);
  }
  return words;
}

std::string_view type_words(OptionSchema::Kind kind) noexcept {
  constexpr std::string_view kWords[] = {"text", "whole number", "number", "duration", "list of texts"};
  return kWords[static_cast<std::size_t>(kind)];
}

}  // namespace gpumeter::config
