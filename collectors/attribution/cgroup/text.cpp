#include "collectors/attribution/cgroup/text.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>

#include "base/fnv1a.hpp"

namespace gpumeter::cgroup {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

unsigned byte_at(std::string_view text, std::size_t i) noexcept {
  return static_cast<unsigned char>(text[i]);
}

/// Length of the UTF-8 sequence that `text` starts with, 0 for none; by table 3-7 of Unicode: the second
/// byte's range depends on the first's (shortest form, no surrogates, nothing above U+10FFFF).
std::size_t sequence_length(std::string_view text) noexcept {
  const unsigned lead = byte_at(text, 0);
  if (lead < 0x80) return 1;
  if (lead < 0xC2 || lead > 0xF4) return 0;
  const std::size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (text.size() < length) return 0;
  const unsigned lowest = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned highest = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  if (byte_at(text, 1) < lowest || byte_at(text, 1) > highest) return 0;
  const std::string_view tail = text.substr(2, length - 2);
  const bool whole = std::all_of(tail.begin(), tail.end(), [](char c) { return (c & 0xC0) == 0x80; });
  return whole ? length : 0;
}

std::string readable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = sequence_length(text);
    const bool control = byte_at(text, 0) < 0x20 || byte_at(text, 0) == 0x7F;
    out += length == 0 || control ? kReplacement : text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

}  // namespace

std::string unescaped(std::string_view name) {
  std::string out;
  out.reserve(name.size());
  while (!name.empty()) {
    unsigned char byte = 0;
    const std::string_view digits = name.starts_with("\\x") ? name.substr(2, 2) : std::string_view();
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
    const bool escape = digits.size() == 2 && error == std::errc{} && end == digits.data() + 2;
    out += escape ? static_cast<char>(byte) : name.front();
    name.remove_prefix(escape ? 4 : 1);
  }
  return out;
}

std::string label_text(std::string_view text) {
  std::string out = readable(text);
  if (out.size() <= kLongestLabel) return out;
  std::size_t kept = kLongestLabel - 1 - kFnv1aDigits;
  while ((out[kept] & 0xC0) == 0x80) --kept;  // not amidst a sequence
  out.resize(kept);
  return out + '~' + fnv1a_digits(text);
}

}  // namespace gpumeter::cgroup
