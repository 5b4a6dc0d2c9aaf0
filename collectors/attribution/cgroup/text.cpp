#include "collectors/attribution/cgroup/text.hpp"

#include "base/text.hpp"

namespace gpumeter::cgroup {

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
  const auto is_control = [](char32_t code) { return code < 0x20 || code == 0x7F; };
  return shortened(readable(text, is_control), kLongestLabel, text);
}

}  // namespace gpumeter::cgroup
