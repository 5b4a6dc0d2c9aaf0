#include "exporter/text/syntax.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "base/text.hpp"

namespace gpumeter {
namespace {

std::string escape(std::string_view raw, bool quotes) {
  std::string out;
  out.reserve(raw.size());
  while (!raw.empty()) {
    const Character next = take_character(raw);
    if (!next) {
      out += kReplacement;
    } else if (next.code == '\n') {
      out += "\\n";
    } else {
      if (next.code == '\\' || (next.code == '"' && quotes)) out += '\\';
      out += next.bytes;
    }
  }
  return out;
}

}  // namespace

EscapedText EscapedText::label_value(std::string_view raw) { return EscapedText(escape(raw, true)); }

EscapedText EscapedText::help(std::string_view raw, Format format) {
  return EscapedText(escape(raw, format == Format::openmetrics));
}

namespace {

char* write_word(char* to, std::string_view word) noexcept { return std::copy(word.begin(), word.end(), to); }

char* write_non_finite(char* to, double value) noexcept {
  if (std::isnan(value)) return write_word(to, "NaN");
  return write_word(to, value > 0 ? "+Inf" : "-Inf");
}

std::string metadata(std::string_view keyword, std::string_view name, std::string_view text) {
  std::string line("# ");
  line.append(keyword).append(" ").append(name).append(" ").append(text).append("\n");
  return line;
}

/// OpenMetrics' name of the family: `_total` belongs to the counter's sample only.
std::string_view openmetrics_name(const MetricDescriptor& family) noexcept {
  std::string_view name = family.name;
  if (family.type == MetricType::counter && name.ends_with("_total")) name.remove_suffix(6);
  return name;
}

/// OpenMetrics calls untyped families unknown, and so must be a counter whose name lacks `_total`.
std::string_view openmetrics_type(const MetricDescriptor& family) noexcept {
  const bool is_unknown = family.type == MetricType::untyped ||
                          (family.type == MetricType::counter && !family.name.ends_with("_total"));
  return is_unknown ? "unknown" : to_string(family.type);
}

void append_labels(const Labels& labels, std::string& to) {
  char before = '{';
  for (const auto& [name, value] : labels.pairs()) {
    to.append(1, before)
        .append(name)
        .append("=\"")
        .append(EscapedText::label_value(value).view())
        .append("\"");
    before = ',';
  }
  to.append(before == ',' ? "} " : " ");
}

}  // namespace

char* write_value(char* to, double value) noexcept {
  // Most values are small whole numbers, whose text equals that of integers; from 1e6 on, %g uses an
  // exponent. Minus zero takes the general path, which keeps its sign.
  constexpr double kExponentFrom = 1e6;
  if (std::abs(value) < kExponentFrom) {
    const auto whole = static_cast<std::int32_t>(value);
    if (value == whole && (whole != 0 || !std::signbit(value))) {
      return std::to_chars(to, to + kValueTextMax, whole).ptr;
    }
  }
  if (!std::isfinite(value)) return write_non_finite(to, value);
  return std::to_chars(to, to + kValueTextMax, value, std::chars_format::general).ptr;
}

std::string family_header(const MetricDescriptor& family, Format format) {
  const EscapedText help = EscapedText::help(family.help, format);
  if (format == Format::text) {
    return metadata("HELP", family.name, help.view()) + metadata("TYPE", family.name, to_string(family.type));
  }
  const std::string_view name = openmetrics_name(family);
  std::string header = metadata("TYPE", name, openmetrics_type(family));
  if (!family.unit.empty()) header += metadata("UNIT", name, family.unit);
  return header + metadata("HELP", name, help.view());
}

void append_line_prefix(const MetricDescriptor& family, SeriesPart part, const Labels& labels,
                        std::string& to) {
  to.append(family.name).append(suffix_of(part));
  append_labels(labels, to);
}

void append_created_prefix(const MetricDescriptor& family, const Labels& labels, std::string& to) {
  to.append(openmetrics_name(family)).append("_created");
  append_labels(labels, to);
}

}  // namespace gpumeter
