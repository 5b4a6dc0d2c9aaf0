#include "exporter/text/escaped_text.hpp"

#include <cstddef>
#include <cstdint>

namespace gpumeter {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

std::uint32_t byte_at(std::string_view text, std::size_t i) noexcept {
  return static_cast<unsigned char>(text[i]);
}

/// Length of the UTF-8 sequence that `text` starts with; 0 where it starts with none (RFC 3629: shortest
/// form, no surrogates, nothing above U+10FFFF).
std::size_t sequence_length(std::string_view text) noexcept {
  const std::uint32_t lead = byte_at(text, 0);
  if (lead < 0x80) return 1;
  if (lead < 0xC2 || lead > 0xF4) return 0;
  const std::size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (text.size() < length) return 0;
  std::uint32_t code = lead & (0x7FU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte_at(text, i) & 0xC0U) != 0x80) return 0;
    code = (code << 6) | (byte_at(text, i) & 0x3FU);
  }
  const bool too_long = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  return too_long || surrogate || code > 0x10FFFF ? 0 : length;
}

std::string escape(std::string_view raw, bool quotes) {
  std::string out;
  out.reserve(raw.size());
  while (!raw.empty()) {
    const std::size_t length = sequence_length(raw);
    const char first = raw.front();
    if (length == 0) {
      out += kReplacement;
    } else if (first == '\n') {
      out += "\\n";
    } else {
      if (first == '\\' || (first == '"' && quotes)) out += '\\';
      out += raw.substr(0, length);
    }
    raw.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

}  // namespace

EscapedText EscapedText::label_value(std::string_view raw) { return EscapedText(escape(raw, true)); }

EscapedText EscapedText::help(std::string_view raw, Format format) {
  return EscapedText(escape(raw, format == Format::openmetrics));
}

}  // namespace gpumeter
