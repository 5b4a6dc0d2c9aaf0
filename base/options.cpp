#include "base/options.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/text.hpp"

namespace gpumeter::options {
namespace {

/// Parses an unquoted scalar as a number. A quoted scalar is a text.
template <class Number>
std::optional<Number> number_of(const Node& node) {
  if (node.kind != Node::Kind::scalar || node.quoted) return std::nullopt;
  return parse_number<Number>(node.text);
}

constexpr std::string_view kNever = "never";

/// Accepts the kernel's user numbers; the highest number means no user.
bool is_uid(std::string_view digits) noexcept {
  const bool canonical = digits == "0" || !digits.starts_with('0');
  return canonical && parse_number<std::uint32_t>(digits).value_or(UINT32_MAX) < UINT32_MAX;
}

/// Levenshtein's distance, one row of the matrix at a time.
std::size_t edit_distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (const char c : from) {
    std::size_t diagonal = row[0]++;
    for (std::size_t i = 0; i < to.size(); ++i) {
      const std::size_t replaced = diagonal + (c == to[i] ? 0U : 1U);
      diagonal = row[i + 1];
      row[i + 1] = std::min({replaced, row[i] + 1, row[i + 1] + 1});
    }
  }
  return row.back();
}

// The limit bounds the cost, which grows with the square of the length. A longer word is no misspelled key.
constexpr std::size_t kLongestWord = 64;

}  // namespace

std::string to_string(const Problem& problem) {
  std::string text = problem.file;
  if (problem.line > 0) text += ":" + std::to_string(problem.line);
  if (!problem.key.empty()) text += ": " + problem.key;
  return text + ": " + problem.text;
}

int Places::line_of(const std::string& key, std::size_t element) const {
  const auto found = lines.find(key);
  return found != lines.end() && element < found->second.size() ? found->second[element] : 0;
}

Wrong must_be(const std::string& what, const Node& node) {
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

std::string enumerate(std::span<const std::string> words, std::string_view last) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " " + std::string(last) + " " : ", ";
    text += words[i];
  }
  return text;
}

std::string nearest(std::string_view word, std::span<const std::string> candidates) {
  if (word.size() > kLongestWord) return {};
  std::size_t least = std::max<std::size_t>(2, word.size() / 5) + 1;
  std::string best;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance >= least || distance >= candidate.size()) continue;
    least = distance;
    best = candidate;
  }
  return best;
}

std::string listed(char open, std::span<const std::string> items, char close) {
  std::string text(1, open);
  for (const std::string& item : items) {
    if (text.size() > 1 && !item.empty()) text += ", ";
    text += item;
  }
  return text + close;
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
      return "item " + std::to_string(i + 1) + " " + complaint->text;
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
      return "the value of \"" + printable(child.key) + "\" " + complaint->text;
    }
  }
  value = std::move(texts);
  return std::nullopt;
}

Complaint read(const Node& node, std::optional<Duration>& value) {
  value.reset();
  if (node.kind == Node::Kind::scalar && node.text == kNever) return std::nullopt;
  const Complaint complaint = read(node, value.emplace());
  if (complaint && complaint->text.starts_with("must be a duration")) {
    return must_be("never or a duration such as 500ms, 10s or 1h30m", node);
  }
  return complaint;
}

std::string show(const std::string& value) { return value.empty() ? "\"\"" : value; }
std::string show(unsigned value) { return std::to_string(value); }
std::string show(bool value) { return value ? "true" : "false"; }
std::string show(Duration value) { return duration_text(value); }

std::string show(const std::vector<std::string>& value) {
  std::vector<std::string> items;
  for (const std::string& item : value) items.push_back(gpumeter::quoted(item));
  return listed('[', items, ']');
}

std::string show(const std::map<std::string, std::string>& value) {
  std::vector<std::string> items;
  for (const auto& [key, text] : value)
    items.push_back(gpumeter::quoted(key) + ": " + gpumeter::quoted(text));
  return listed('{', items, '}');
}

std::string show(std::optional<Duration> value) { return value ? show(*value) : std::string(kNever); }

std::string Section::path_of(const Option& option) const {
  return (name.empty() ? "" : std::string(name) + ".") + std::string(option.name);
}

bool is_number(std::string_view text) noexcept {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

Complaint check_absolute_path(const std::string& path) {
  if (path.starts_with('/')) return std::nullopt;
  return "must be a path that begins with /, not \"" + printable(path) + "\"";
}

Complaint check_optional_path(const std::string& path) {
  return path.empty() ? std::nullopt : check_absolute_path(path);
}

Complaint check_socket_path(const std::string& path) {
  constexpr std::size_t kLongest = 107;  // sockaddr_un(7): 108 bytes with the NUL
  if (path.empty()) return std::nullopt;
  if (path.size() > kLongest) return "must have at most 107 bytes, as the address of a socket";
  return check_absolute_path(path);
}

Complaint check_users(const std::vector<std::string>& users) {
  const auto is_wrong = [](const std::string& user) {
    return user.empty() || (is_number(user) && !is_uid(user));
  };
  const auto wrong = std::find_if(users.begin(), users.end(), is_wrong);
  if (wrong == users.end()) return std::nullopt;
  if (wrong->empty()) return "must be names or numbers of users; one of them is empty";
  return "must be names or numbers from 0 to 4294967294, without leading zeros, not \"" + printable(*wrong) +
         "\"";
}

Complaint check_percent(const unsigned& percent) {
  if (percent <= 100) return std::nullopt;
  return "must be a whole number from 0 to 100, not " + std::to_string(percent);
}

Complaint check_port(const unsigned& port) {
  if (port > 0 && port <= UINT16_MAX) return std::nullopt;
  return "must be from 1 to 65535";
}

Complaint parse_option(const std::string& text, Port& port) {
  const auto number = text.starts_with('0') ? std::nullopt : parse_number<std::uint16_t>(text);
  if (!number) return "must be ports from 1 to 65535, not \"" + printable(text) + "\"";
  port.number = *number;
  return std::nullopt;
}

}  // namespace gpumeter::options
