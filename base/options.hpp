#pragma once

#include <algorithm>
#include <any>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/text.hpp"

/// The options of one section of the configuration file. Their owner declares them as a table next to the
/// struct that they are read into. Parsing, flags, reload and docs/configuration.md (config/) all use that
/// table; nothing copies the values.
///
///     struct Settings {                                  // the initialisers are the defaults
///       Duration interval = std::chrono::seconds(30);
///       bool operator==(const Settings&) const = default;
///     };
///     constexpr Option kOptions[] = {
///         option<&Settings::interval>("interval", Reload::restart, "Time between two queries.",
///         checked<check_interval>),
///     };
///     constinit const Section kSection = section("nccl", kOptions);
namespace gpumeter::options {

/// A value of the file with its line.
struct Node {
  enum class Kind : std::uint8_t { null, scalar, sequence, map };
  Kind kind = Kind::null;
  bool quoted = false;         ///< a scalar in quotes or a block: always a text
  int line = 0;                ///< from 1; the line of the key if the value is in a map; 0: not from a file
  std::string key;             ///< in a map
  std::string text;            ///< of a scalar
  std::vector<Node> children;  ///< of a sequence or map, in the file's order
};

/// The correction of a wrong value: `must be ..., not "..."`.
struct Wrong {
  // NOLINTBEGIN(google-explicit-constructor): a check returns its text.
  Wrong(const char* correction) : text(correction) {}
  Wrong(std::string correction, int of_line = 0) : text(std::move(correction)), line(of_line) {}
  // NOLINTEND(google-explicit-constructor)
  std::string text;
  int line = 0;  ///< of the element that is wrong; 0: that of the key
};
/// nullopt: the value is valid.
using Complaint = std::optional<Wrong>;

/// One problem of a file: its place, its key, and the correction.
struct Problem {
  std::string file;
  int line = 0;     ///< from 1; 0: the file as a whole
  std::string key;  ///< full path, "web.listen"; empty: no key in particular
  std::string text;
};

/// Returns "gpumeter.yaml:3: web.listen: must be ...".
std::string to_string(const Problem& problem);

/// The lines of a file's values, for checks of more than one value.
struct Places {
  std::string file;  ///< empty: no file was read
  /// By the key's full path: the line of each element of a list, or the one line of any other value.
  std::map<std::string, std::vector<int>> lines;

  /// Returns 0 if the file does not have the element. A plain value is element 0.
  int line_of(const std::string& key, std::size_t element = 0) const;
  Problem problem(const std::string& key, std::size_t element, const std::string& text) const {
    return {file, line_of(key, element), key, text};
  }
};

/// auto: as the subject decides.
enum class Enabled : std::uint8_t { automatic, on, off };
inline constexpr EnumNames<Enabled, 3> kEnabledNames = {
    {{Enabled::automatic, "auto"}, {Enabled::on, "true"}, {Enabled::off, "false"}}};
constexpr const auto& names_of(Enabled) noexcept { return kEnabledNames; }

// Three functions read a type from the file, show a value and name the type in words. A subject's own type
// either has them in its namespace, or has only parse_option() and text_of(), or, for the words of a closed
// set, names_of().

/// Returns "must be `what`, not ..." with the value.
Wrong must_be(const std::string& what, const Node& node);
/// Describes a value for the end of a complaint: `"40x"`, `the text "40"`, `a list`.
std::string found(const Node& node);
/// Returns text of the file made safe and short enough for a message.
std::string printable(std::string_view text);
/// Returns "a, b and c", for messages; `last` precedes the last word.
std::string enumerate(std::span<const std::string> words, std::string_view last);
/// Returns the candidate nearest to `word` by edit distance; empty if none is near.
std::string nearest(std::string_view word, std::span<const std::string> candidates);
/// Returns the items between brackets, separated by commas, without those that are empty.
std::string listed(char open, std::span<const std::string> items, char close);

Complaint read(const Node& node, std::string& value);
/// From 0 to 1,000,000.
Complaint read(const Node& node, unsigned& value);
Complaint read(const Node& node, bool& value);
Complaint read(const Node& node, Duration& value);
Complaint read(const Node& node, std::vector<std::string>& value);
Complaint read(const Node& node, std::map<std::string, std::string>& value);
/// "never" is nullopt.
Complaint read(const Node& node, std::optional<Duration>& value);

std::string show(const std::string& value);
std::string show(unsigned value);
std::string show(bool value);
std::string show(Duration value);
std::string show(const std::vector<std::string>& value);
std::string show(const std::map<std::string, std::string>& value);
std::string show(std::optional<Duration> value);

inline std::string type_words(const std::string&) { return "text"; }
inline std::string type_words(unsigned) { return "whole number"; }
inline std::string type_words(bool) { return "true or false"; }
inline std::string type_words(Duration) { return "duration"; }
inline std::string type_words(const std::vector<std::string>&) { return "list of texts"; }
inline std::string type_words(const std::map<std::string, std::string>&) { return "map of texts"; }
inline std::string type_words(std::optional<Duration>) { return "duration or never"; }

/// The words of a closed set.
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
  return std::string(names_of(value).of(value));
}

/// A type that the file spells as a text: `parse_option` leaves the value unchanged if it complains.
template <class T>
concept Spelled = requires(const std::string& text, T& value, const T& known) {
  { parse_option(text, value) } -> std::same_as<Complaint>;
  { text_of(known) } -> std::convertible_to<std::string>;
};

template <Spelled T>
std::string type_words(const T&) {
  return "text";
}
template <Spelled T>
Complaint read(const Node& node, T& value) {
  std::string text;
  if (Complaint complaint = read(node, text)) return complaint;
  return parse_option(text, value);
}
template <Spelled T>
std::string show(const T& value) {
  return show(std::string(text_of(value)));
}

template <Spelled T>
std::string type_words(const std::vector<T>&) {
  return "list of texts";
}
template <Spelled T>
Complaint read(const Node& node, std::vector<T>& value) {
  std::vector<std::string> texts;
  if (Complaint complaint = read(node, texts)) return complaint;
  std::vector<T> items(texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (Complaint complaint = parse_option(texts[i], items[i])) return complaint;
  }
  value = std::move(items);
  return std::nullopt;
}
template <Spelled T>
std::string show(const std::vector<T>& value) {
  std::vector<std::string> texts;
  for (const T& item : value) texts.emplace_back(text_of(item));
  return show(texts);
}

/// The type as which a member is read, checked and shown.
template <class T>
struct ReadAs {
  using Type = T;
};
template <class T>
  requires(std::unsigned_integral<T> && !std::same_as<T, bool>)
struct ReadAs<T> {
  using Type = unsigned;
};
template <>
struct ReadAs<Nanoseconds> {
  using Type = Duration;
};

template <class T>
using CheckOf = Complaint (*)(const T&);
/// A CheckOf<T> without its type.
using AnyCheck = Complaint (*)(const void* value);

/// How values of one type are read, shown and named: one instance per type, not per option.
struct ValueType {
  std::string (*words)();
  bool is_list;
  Complaint (*read)(const Node& node, AnyCheck check, void* place);
  std::string (*show)(const void* place);
};

template <class T>
Complaint read_checked(const Node& node, AnyCheck check, void* place) {
  typename ReadAs<T>::Type value{};
  Complaint complaint = read(node, value);
  if (!complaint && check != nullptr) complaint = check(&value);
  if (!complaint) *static_cast<T*>(place) = static_cast<T>(std::move(value));
  return complaint;
}

template <class T>
std::string show_at(const void* place) {
  using Shown = typename ReadAs<T>::Type;
  const T& value = *static_cast<const T*>(place);
  if constexpr (std::same_as<T, Shown>) {
    return show(value);
  } else if constexpr (std::same_as<Shown, Duration>) {
    return show(std::chrono::duration_cast<Duration>(value));
  } else {
    return show(static_cast<Shown>(value));
  }
}

/// A type says so by a member `kIsList`.
template <class T>
constexpr bool is_list() noexcept {
  if constexpr (requires { T::kIsList; }) return T::kIsList;
  return requires(T value) { value.push_back(value.front()); } && !std::same_as<T, std::string>;
}

template <class T>
inline constexpr ValueType kValueType = {[] { return type_words(typename ReadAs<T>::Type{}); }, is_list<T>(),
                                         read_checked<T>, show_at<T>};

/// A struct of settings: default-constructible, copyable, comparable.
struct SettingsType {
  const void* (*defaults)();
  std::any (*copy)(const void* settings);
  void* (*in)(std::any& holder);
  bool (*equal)(const void* one, const void* other);
};

template <class Settings>
inline constexpr SettingsType kSettingsType = {
    []() -> const void* {
      static const Settings kDefaults{};
      return &kDefaults;
    },
    [](const void* settings) { return std::any(*static_cast<const Settings*>(settings)); },
    [](std::any& holder) -> void* { return std::any_cast<Settings>(&holder); },
    [](const void* one, const void* other) {
      return *static_cast<const Settings*>(one) == *static_cast<const Settings*>(other);
    }};

/// Whether a reload (SIGHUP) applies a change.
enum class Reload : bool { restart, applies };

/// One key of a section. A constant: a function per option would be 100 kB of code.
struct Option {
  std::string_view name;
  Reload reload;
  std::string_view help;
  const SettingsType* owner;
  const void* (*place)(const void* settings);  ///< the member
  const ValueType* type;
  AnyCheck check;  ///< null: every value of the type is valid
};

template <class T>
struct Check {
  AnyCheck call = nullptr;
};
template <auto kFunction, class T>
constexpr Check<T> erased(CheckOf<T>) noexcept {
  return {[](const void* value) { return kFunction(*static_cast<const T*>(value)); }};
}
/// Validates a value beyond its type, by a `Complaint (*)(const T&)`.
template <auto kFunction>
inline constexpr auto checked = erased<kFunction>(kFunction);

template <class T, class Member>
T owner_of(Member T::*);
template <auto kFirst, auto...>
using Owner = decltype(owner_of(kFirst));
template <class Settings, auto... kMembers>
constexpr const auto& member(const Settings& settings) noexcept {
  return (settings.*....*kMembers);
}
template <class Settings, auto... kMembers>
using MemberType =
    std::remove_cvref_t<decltype(member<Settings, kMembers...>(std::declval<const Settings&>()))>;

/// An option whose value is `Settings` itself, or a member of it at any depth.
template <class Settings, auto... kMembers>
constexpr Option option_of(std::string_view name, Reload reload, std::string_view help,
                           Check<typename ReadAs<MemberType<Settings, kMembers...>>::Type> check = {}) {
  const auto place = [](const void* settings) -> const void* {
    return &member<Settings, kMembers...>(*static_cast<const Settings*>(settings));
  };
  return {name,      reload,
          help,      &kSettingsType<Settings>,
          place,     &kValueType<MemberType<Settings, kMembers...>>,
          check.call};
}
template <auto kFirst, auto... kRest>
constexpr Option option(
    std::string_view name, Reload reload, std::string_view help,
    Check<typename ReadAs<MemberType<Owner<kFirst>, kFirst, kRest...>>::Type> check = {}) {
  return option_of<Owner<kFirst>, kFirst, kRest...>(name, reload, help, check);
}

using Problems = std::vector<Problem>;

/// A part of the file with its options. Self-contained: a program may have one section and ignore the rest.
struct Section {
  std::string_view name;  ///< "nccl", "jobs.limits"; empty: the options are at the top of the file
  std::span<const Option> options;
  const SettingsType* type;
  /// Null, or adds the conflicts between values that are each valid alone. A problem names a key that the
  /// file has; the other key may be a default.
  void (*check)(const void* settings, const Places& places, Problems& problems) = nullptr;

  /// "nccl.port"
  std::string path_of(const Option& option) const;
};

/// At least one option; all have the same owner.
constexpr Section section(std::string_view name, std::span<const Option> options) {
  const SettingsType* const type = options.front().owner;
  for (const Option& option : options) {
    if (option.owner != type) throw option.name;  // does not compile
  }
  return {name, options, type};
}
template <auto kCheck, class Settings>
constexpr Section with_check(Section section, void (*)(const Settings&, const Places&, Problems&)) {
  if (section.type != &kSettingsType<Settings>) throw section.name;  // does not compile
  section.check = [](const void* settings, const Places& places, Problems& problems) {
    kCheck(*static_cast<const Settings*>(settings), places, problems);
  };
  return section;
}
/// With a check of the relations between the options.
template <auto kCheck>
constexpr Section section(std::string_view name, std::span<const Option> options) {
  return with_check<kCheck>(section(name, options), kCheck);
}

// Checks that more than one subject needs.

/// True for digits only, such as a uid in a list of users.
bool is_number(std::string_view text) noexcept;
Complaint check_absolute_path(const std::string& path);
/// Requires an absolute path; empty: no file.
Complaint check_optional_path(const std::string& path);
/// Requires an absolute path that is short enough for a socket's address. Empty: no socket.
Complaint check_socket_path(const std::string& path);
/// Requires that numbers are uids. Whether named users exist is not checked.
Complaint check_users(const std::vector<std::string>& users);
Complaint check_percent(const unsigned& percent);
/// Requires the number of a TCP port.
Complaint check_port(const unsigned& port);

/// A list of TCP ports, which the file spells as texts.
struct Port {
  std::uint16_t number = 0;
  bool operator==(const Port&) const = default;
};
Complaint parse_option(const std::string& text, Port& port);
inline std::string text_of(const Port& port) { return std::to_string(port.number); }

}  // namespace gpumeter::options
