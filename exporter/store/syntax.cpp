#include "exporter/store/syntax.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "exporter/store/escaped_text.hpp"

namespace gpumeter {
namespace {

char* write_word(char* to, std::string_view word) noexcept { return std::copy(word.begin(), word.end(), to); }

char* write_non_finite(char* to, double value) noexcept {
  if (std::isnan(value)) return write_word(to, "NaN");
  return write_word(to, value > 0 ? "+Inf" : "-Inf");
}

std::string_view type_word(MetricType type) noexcept {
  constexpr std::string_view kWords[] = {"gauge", "counter", "histogram"};
  return kWords[static_cast<std::size_t>(type)];
}

std::string metadata(std::string_view keyword, std::string_view name, std::string_view text) {
  std::string line("# ");
  line.append(keyword).append(" ").append(name).append(" ").append(text).append("\n");
  return line;
}

}  // namespace

char* write_value(char* to, double value) noexcept {
  // Most values are small whole numbers, and these have the same text as integers; from 1e6 on %g has an
  // exponent. Minus zero is left to the general way, which keeps its sign.
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
  const std::string_view type = type_word(family.type);
  if (format == Format::text) {
    return metadata("HELP", family.name, help.view()) + metadata("TYPE", family.name, type);
  }
  std::string_view name = family.name;
  if (family.type == MetricType::counter && name.ends_with("_total")) name.remove_suffix(6);
  std::string header = metadata("TYPE", name, type);
  if (!family.unit.empty()) header += metadata("UNIT", name, family.unit);
  return header + metadata("HELP", name, help.view());
}

void append_line_prefix(const MetricDescriptor& family, Part part, const Labels& labels, std::string& to) {
  constexpr std::string_view kSuffixes[] = {"", "_bucket", "_sum", "_count"};
  to.append(family.name).append(kSuffixes[static_cast<std::size_t>(part)]);
  char before = '{';
  for (const auto& [name, value] : labels.pairs()) {
    to.append(1, before).append(name).append("=\"").append(EscapedText::label_value(value).view()).append("\"");
    before = ',';
  }
  to.append(before == ',' ? "} " : " ");
}

std::string line_prefix(const MetricDescriptor& family, std::string_view suffix, std::string_view labels) {
  std::string prefix(family.name);
  prefix += suffix;
  if (!labels.empty()) prefix.append("{").append(labels).append("}");
  return prefix += ' ';
}

bool is_line_prefix(std::string_view prefix, const MetricDescriptor& family, std::string_view suffix,
                    std::string_view labels) noexcept {
  const auto take = [&prefix](std::string_view part) {
    if (!prefix.starts_with(part)) return false;
    prefix.remove_prefix(part.size());
    return true;
  };
  if (!take(family.name) || !take(suffix)) return false;
  return (labels.empty() || (take("{") && take(labels) && take("}"))) && prefix == " ";
}

}  // namespace gpumeter
