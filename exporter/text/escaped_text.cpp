#include "exporter/text/escaped_text.hpp"

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

}  // namespace gpumeter
