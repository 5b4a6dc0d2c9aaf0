#include "base/series_pattern.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace gpumeter {
namespace {

constexpr char kAny = '*';

constexpr bool is_name_character(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool take(std::string_view& text, char token) noexcept {
  if (!text.starts_with(token)) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

bool SeriesPattern::Glob::matches(std::string_view text) const noexcept {
  const std::string_view last = parts_.back();
  if (parts_.size() == 1) return text == last;
  if (!text.starts_with(parts_.front())) return false;
  text.remove_prefix(parts_.front().size());
  for (std::size_t i = 1; i + 1 < parts_.size(); ++i) {
    const std::size_t at = text.find(parts_[i]);
    if (at == std::string_view::npos) return false;
    text.remove_prefix(at + parts_[i].size());
  }
  return text.ends_with(last);
}

bool SeriesPattern::matches_name(std::string_view family) const noexcept { return name_.matches(family); }

Result<SeriesPattern> SeriesPattern::parse(std::string_view text) {
  SeriesPattern pattern;
  pattern.text_ = text;
  std::string_view rest = text;
  const bool has_name = take_name(rest, pattern.name_);
  if (has_name && (rest.empty() || (pattern.take_labels(rest) && rest.empty()))) return pattern;
  return Error("must be the name of a family, such as gpu_link_* or gpu_xid_errors_total{xid=\"31\"}");
}

bool SeriesPattern::take_name(std::string_view& text, Glob& name) {
  const std::size_t before = text.size();
  for (; !text.empty() && (is_name_character(text.front()) || text.front() == kAny); text.remove_prefix(1)) {
    text.front() == kAny ? name.add_wildcard() : name.add(text.front());
  }
  return text.size() < before;
}

bool SeriesPattern::take_value(std::string_view& text, Glob& value) {
  if (!take(text, '"')) return false;
  for (; !text.empty() && text.front() != '"'; text.remove_prefix(1)) {
    const bool is_literal = text.front() == '\\' && text.size() > 1;
    if (is_literal) text.remove_prefix(1);
    !is_literal&& text.front() == kAny ? value.add_wildcard() : value.add(text.front());
  }
  return take(text, '"');
}

bool SeriesPattern::take_labels(std::string_view& text) {
  if (!take(text, '{')) return false;
  do {
    Label& label = labels_.emplace_back();
    for (; !text.empty() && is_name_character(text.front()); text.remove_prefix(1))
      label.name += text.front();
    if (label.name.empty() || !take(text, '=') || !take_value(text, label.value)) return false;
  } while (take(text, ','));
  return take(text, '}');
}

}  // namespace gpumeter
