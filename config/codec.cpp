#include "config/codec.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "base/duration.hpp"
#include "base/text.hpp"
#include "config/suggest.hpp"

namespace gpumeter::config {
namespace {

Complaint must_be(const std::string& what, const Node& node) {
  return "must be " + what + ", not " + found(node);
}

/// A scalar that is a number as it stands: quotes make it a text.
template <class Number>
std::optional<Number> number_of(const Node& node) {
  if (node.kind != Node::Kind::scalar || node.quoted) return std::nullopt;
  return parse_number<Number>(node.text);
}

template <class Word>
std::vector<std::string> words_of() {
  std::vector<std::string> words;
  for (const auto& [value, name] : names_of(Word{})) words.emplace_back(name);
  return words;
}

template <class Word>
std::optional<Word> word_of(const Node& node) {
  return node.kind == Node::Kind::scalar ? names_of(Word{}).find(node.text) : std::nullopt;
}

template <class Word>
Complaint read_word(const Node& node, Word& value) {
  const auto word = word_of<Word>(node);
  if (!word) return must_be(enumerate(words_of<Word>(), "or"), node);
  value = *word;
  return std::nullopt;
}

std::string listed(const std::vector<std::string>& texts) {
  std::string text = "[";
  for (const std::string& item : texts) {
    if (text.size() > 1) text += ", ";
    text += "\"" + item + "\"";
  }
  return text + "]";
}

}  // namespace

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
  if (node.kind == Node::Kind::scalar) {
    if (const auto duration = parse_duration(node.text)) {
      value = *duration;
      return std::nullopt;
    }
    if (parse_number<double>(node.text)) {
      const std::string text = printable(node.text);
      return "must have a unit, such as " + text + "s or " + text + "ms, not be the bare number " + text;
    }
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

Complaint read(const Node& node, LogLevel& value) { return read_word(node, value); }
Complaint read(const Node& node, LogFormat& value) { return read_word(node, value); }
Complaint read(const Node& node, Enabled& value) { return read_word(node, value); }

Complaint read(const Node& node, std::vector<DeviceLabel>& value) {
  const std::string words = enumerate(words_of<DeviceLabel>(), "or");
  if (node.kind != Node::Kind::sequence) return must_be("a list of " + words, node);
  std::vector<DeviceLabel> labels;
  for (const Node& item : node.children) {
    const auto label = word_of<DeviceLabel>(item);
    if (!label) return "must be a list of " + words + "; gpu and uuid are always there; not " + found(item);
    if (std::find(labels.begin(), labels.end(), *label) != labels.end()) {
      return "must have every label once, not " + found(item) + " twice";
    }
    labels.push_back(*label);
  }
  value = std::move(labels);
  return std::nullopt;
}

Complaint check_integer(const Node& node) {
  return number_of<std::int64_t>(node) ? std::nullopt : must_be("a whole number", node);
}

Complaint check_number(const Node& node) {
  const auto number = number_of<double>(node);
  return number && std::isfinite(*number) ? std::nullopt : must_be("a number", node);
}

std::string show(const std::string& value) { return value.empty() ? "\"\"" : value; }
std::string show(unsigned value) { return std::to_string(value); }
std::string show(bool value) { return value ? "true" : "false"; }
std::string show(Duration value) { return duration_text(value); }
std::string show(const std::vector<std::string>& value) { return listed(value); }
std::string show(LogLevel value) { return std::string(to_string(value)); }
std::string show(LogFormat value) { return std::string(to_string(value)); }

std::string show(const std::map<std::string, std::string>& value) {
  std::string text = "{";
  for (const auto& [key, item] : value) {
    if (text.size() > 1) text += ", ";
    text.append("\"").append(key).append("\": \"").append(item).append("\"");
  }
  return text + "}";
}

std::string show(const std::vector<DeviceLabel>& value) {
  std::string text = "[";
  for (const DeviceLabel label : value) {
    if (text.size() > 1) text += ", ";
    text += to_string(label);
  }
  return text + "]";
}

}  // namespace gpumeter::config
