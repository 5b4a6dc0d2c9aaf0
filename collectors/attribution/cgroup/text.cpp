#include "collectors/attribution/cgroup/text.hpp"

#include "base/fnv1a.hpp"
#include "base/text.hpp"

namespace gpumeter::cgroup {
namespace {

std::string readable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character next = take_character(text);
    const bool is_control = next.code < 0x20 || next.code == 0x7F;
    out += !next || is_control ? kReplacement : next.bytes;
  }
  return out;
}

}  // namespace

std::string unescaped(std::string_view name) {
  std::string out;
  out.reserve(name.size());
  while (!name.empty()) {
    const bool may_be_escape = name.size() >= 4 && name.starts_with("\\x");
    const auto byte = may_be_escape ? parse_number<unsigned char>(name.substr(2, 2), 16) : std::nullopt;
    out += byte ? static_cast<char>(*byte) : name.front();
    name.remove_prefix(byte ? 4 : 1);
  }
  return out;
}

std::string label_text(std::string_view text) {
  std::string out = readable(text);
  if (out.size() <= kLongestLabel) return out;
  out.resize(first_bytes(out, kLongestLabel - 1 - kFnv1aDigits).size());
  return out + '~' + fnv1a_digits(text);
}

}  // namespace gpumeter::cgroup
