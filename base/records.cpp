#include "base/records.hpp"

#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>
#include <utility>

namespace gpumeter {
namespace {

constexpr std::string_view kAbsent = "-";

template <class Number>
std::optional<Number> parsed(std::string_view text) noexcept {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

template <class Number>
void append(std::string& out, Number value) {
  char text[40];
  out.append(text, std::to_chars(text, text + sizeof text, value).ptr);
}

std::optional<char> unescaped(char code) noexcept {
  if (code == 't') return '\t';
  if (code == 'n') return '\n';
  if (code == '\\') return '\\';
  return std::nullopt;
}

}  // namespace

RecordWriter& RecordWriter::begin(std::string_view kind) {
  if (!text_.empty()) text_ += '\n';
  text_ += kind;
  return *this;
}

void RecordWriter::put(std::string_view text) {
  text_ += '\t';
  for (const char c : text) {
    if (c == '\t') text_ += "\\t";
    if (c == '\n') text_ += "\\n";
    if (c == '\\') text_ += "\\\\";
    if (c != '\t' && c != '\n' && c != '\\') text_ += c;
  }
}

void RecordWriter::put(double value) {
  text_ += '\t';
  append(text_, value);
}

void RecordWriter::put_integer(std::int64_t value) {
  text_ += '\t';
  append(text_, value);
}

RecordWriter& RecordWriter::to_end(const std::map<std::string, double>& amounts) {
  for (const auto& [name, amount] : amounts) (*this)(name, amount);
  return *this;
}

std::string RecordWriter::take() {
  if (!text_.empty()) text_ += '\n';
  return std::exchange(text_, {});
}

// A line without its end is cut, so it counts as malformed.
bool RecordReader::next() {
  if (failed_ || rest_.empty()) return false;
  const std::size_t end = rest_.find('\n');
  if (end == std::string_view::npos) {
    failed_ = true;
    return false;
  }
  ++line_;
  fields_ = rest_.substr(0, end);
  rest_.remove_prefix(end + 1);
  has_field_ = true;
  kind_ = field();
  return true;
}

std::string_view RecordReader::field() {
  if (!has_field_ || failed_) {
    failed_ = true;
    return {};
  }
  const std::size_t end = fields_.find('\t');
  has_field_ = end != std::string_view::npos;
  const std::string_view found = fields_.substr(0, end);
  fields_.remove_prefix(has_field_ ? end + 1 : fields_.size());
  return found;
}

void RecordReader::get(std::string& value) {
  value.clear();
  const std::string_view raw = field();
  value.reserve(raw.size());
  for (std::size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '\\') {
      value += raw[i];
      continue;
    }
    const std::optional<char> c = i + 1 < raw.size() ? unescaped(raw[++i]) : std::nullopt;
    if (!c) {
      failed_ = true;
      return value.clear();
    }
    value += *c;
  }
}

void RecordReader::get(double& value) {
  const std::optional<double> number = parsed<double>(field());
  check(number && std::isfinite(*number));
  value = failed_ ? 0 : *number;
}

std::int64_t RecordReader::integer(std::int64_t least, std::int64_t most) {
  const std::optional<std::int64_t> value = parsed<std::int64_t>(field());
  check(value && *value >= least && *value <= most);
  return failed_ ? 0 : *value;
}

void RecordReader::get(Nanoseconds& value) {
  using Limits = std::numeric_limits<std::int64_t>;
  // A quarter of the range, so that the difference of two times never overflows.
  value = Nanoseconds(integer(Limits::min() / 4, Limits::max() / 4));
}

bool RecordReader::take_none() {
  const bool is_none = fields_.substr(0, fields_.find('\t')) == kAbsent;
  if (is_none) field();
  return is_none;
}

RecordReader& RecordReader::to_end(std::map<std::string, double>& amounts) {
  while (has_field()) {
    const std::string name = take<std::string>();
    this->amounts(amounts[name]);
  }
  return *this;
}

}  // namespace gpumeter
