#include "exporter/access/credentials.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace gpumeter {
namespace {

constexpr std::string_view kScheme = "basic";
constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

char lowered(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; }

/// Removes the scheme and the blanks after it; false if it is another one.
bool take_scheme(std::string_view& text) noexcept {
  if (text.size() <= kScheme.size() || text[kScheme.size()] != ' ') return false;
  const std::string_view scheme = text.substr(0, kScheme.size());
  if (!std::ranges::equal(scheme, kScheme, {}, lowered)) return false;
  text.remove_prefix(std::min(text.find_first_not_of(' ', kScheme.size()), text.size()));
  return true;
}

/// Decodes base64 with padding, whose unused bits must be 0 (RFC 4648 section 3.5).
std::optional<std::string> decode_base64(std::string_view text) {
  if (text.empty() || text.size() % 4 != 0) return std::nullopt;
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  text.remove_suffix(padding);
  std::string bytes;
  std::uint32_t bits = 0;
  unsigned count = 0;
  for (const char c : text) {
    const std::size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    bits = (bits << 6U | static_cast<std::uint32_t>(digit)) & 0xffffU;
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 0xffU);
  }
  const bool is_canonical = (bits & ((1U << count) - 1)) == 0;
  return is_canonical ? std::optional(bytes) : std::nullopt;
}

bool is_control(char c) noexcept { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

}  // namespace

std::optional<Credentials> parse_basic_credentials(std::string_view header) {
  if (!take_scheme(header)) return std::nullopt;
  const std::optional<std::string> text = decode_base64(header);
  if (!text || std::ranges::any_of(*text, is_control)) return std::nullopt;
  const std::size_t colon = text->find(':');
  if (colon == std::string::npos) return std::nullopt;
  return Credentials{text->substr(0, colon), text->substr(colon + 1)};
}

}  // namespace gpumeter
