#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/option_schema.hpp"
#include "config/config.hpp"
#include "config/suggest.hpp"
#include "config/yaml_tree.hpp"

/// Reads each type of a key from the file, shows its value and names the type in words. A new type of key
/// needs one more overload of the three functions.
namespace gpumeter::config {

/// The correction of a wrong value: `must be ..., not "..."`. nullopt: the value is valid.
using Complaint = std::optional<std::string>;

/// Returns "must be `what`, not ..." with the value.
Complaint must_be(const std::string& what, const Node& node);

Complaint read(const Node& node, std::string& value);
Complaint read(const Node& node, unsigned& value);
Complaint read(const Node& node, bool& value);
Complaint read(const Node& node, Duration& value);
Complaint read(const Node& node, std::vector<std::string>& value);
Complaint read(const Node& node, std::map<std::string, std::string>& value);
Complaint read(const Node& node, DeviceLabels& value);
/// "never" is nullopt.
Complaint read(const Node& node, std::optional<Duration>& value);
Complaint read(const Node& node, ExpectedDevices& value);

std::string show(const std::string& value);
std::string show(unsigned value);
std::string show(bool value);
std::string show(Duration value);
std::string show(const std::vector<std::string>& value);
std::string show(const std::map<std::string, std::string>& value);
std::string show(const DeviceLabels& value);
std::string show(std::optional<Duration> value);
std::string show(const ExpectedDevices& value);

inline std::string type_words(const std::string&) { return "text"; }
inline std::string type_words(unsigned) { return "whole number"; }
inline std::string type_words(bool) { return "true or false"; }
inline std::string type_words(Duration) { return "duration"; }
inline std::string type_words(const std::vector<std::string>&) { return "list of texts"; }
inline std::string type_words(const std::map<std::string, std::string>&) { return "map of texts"; }
std::string type_words(const DeviceLabels&);
inline std::string type_words(std::optional<Duration>) { return "duration or never"; }
inline std::string type_words(const ExpectedDevices&) { return "whole number, or a map of them by vendor"; }

/// For the words of a closed set.
template <class Word>
  requires std::is_enum_v<Word>
std::string type_words(Word) {
  std::vector<std::string> words;
  for (const auto& [value, name] : names_of(Word{})) words.emplace_back(name);
  return enumerate(words, "or");
}
template <class Word>
  requires std::is_enum_v<Word>
Complaint read(const Node& node, Word& value) {
  const auto word = node.kind == Node::Kind::scalar ? names_of(Word{}).find(node.text) : std::nullopt;
  if (!word) return must_be(type_words(value), node);
  value = *word;
  return std::nullopt;
}
template <class Word>
  requires std::is_enum_v<Word>
std::string show(Word value) {
  return std::string(to_string(value));
}

/// Reads the option of a collector, whose values remain texts. A plain value is a list of one.
Complaint read(const Node& node, OptionSchema::Kind kind, std::vector<std::string>& values);
std::string_view type_words(OptionSchema::Kind kind) noexcept;

/// Describes a value for the end of a complaint: `"40x"`, `the text "40"`, `a list`.
std::string found(const Node& node);

/// Returns text of the file made safe and short enough for a message.
std::string printable(std::string_view text);

}  // namespace gpumeter::config
