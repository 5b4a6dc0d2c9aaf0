#include "exporter/access/password.hpp"

#include <crypt.h>
#include <string.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include "base/text.hpp"

namespace gpumeter {
namespace {

constexpr std::size_t kHashLength = 60;
constexpr std::size_t kCostAt = 4;  // "$2y$"
constexpr std::size_t kSaltAt = 7;  // "$2y$10$"

bool is_bcrypt_digit(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '/';
}

bool is_prefix(std::string_view text) noexcept {
  return text.starts_with("$2") && std::string_view("abxy").find(text[2]) != std::string_view::npos &&
         text[3] == '$' && text[6] == '$';
}

/// crypt_rn()'s 32 KiB of scratch memory, which hold the password; wiped at the end.
struct WipeScratch {
  void operator()(crypt_data* data) const noexcept {
    explicit_bzero(data, sizeof *data);
    delete data;
  }
};

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

bool is_ascii_control(char c) noexcept { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

}  // namespace

Result<unsigned> bcrypt_cost(std::string_view hash) {
  if (hash.size() < kHashLength) return Error("hashedSecret too short to be a bcrypted password");
  if (hash.size() > kHashLength) return Error("the hash is too long to be a bcrypted password");
  if (!is_prefix(hash)) return Error("must be a bcrypt hash that starts with $2a$, $2b$, $2x$ or $2y$");
  const auto cost = parse_number<unsigned>(hash.substr(kCostAt, 2));
  if (!cost || *cost < 4 || *cost > 31) return Error("the bcrypt cost must be from 04 to 31");
  if (!std::ranges::all_of(hash.substr(kSaltAt), is_bcrypt_digit)) {
    return Error("the bcrypt hash has a character other than ./0-9A-Za-z");
  }
  return *cost;
}

// exporter-toolkit's dummy hash, with the cost of the real ones.
std::string dummy_bcrypt_hash(unsigned cost) {
  const std::string digits = std::to_string(cost);
  return "$2y$" + (digits.size() < 2 ? "0" + digits : digits) +
         "$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi";
}

std::optional<bool> bcrypt_matches(const std::string& password, const std::string& hash) {
  const std::unique_ptr<crypt_data, WipeScratch> data(new (std::nothrow) crypt_data());
  if (data == nullptr) return std::nullopt;
  const char* computed = crypt_rn(password.c_str(), hash.c_str(), data.get(), sizeof *data);
  if (computed == nullptr) return false;
  const std::string_view text = computed;
  if (text.size() != hash.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < text.size(); ++i) difference |= static_cast<unsigned char>(text[i] ^ hash[i]);
  return difference == 0;
}

std::optional<Credentials> parse_basic_credentials(std::string_view header) {
  if (!take_scheme(header)) return std::nullopt;
  const std::optional<std::string> text = decode_base64(header);
  if (!text || std::ranges::any_of(*text, is_ascii_control)) return std::nullopt;
  const std::size_t colon = text->find(':');
  if (colon == std::string::npos) return std::nullopt;
  return Credentials{text->substr(0, colon), text->substr(colon + 1)};
}

}  // namespace gpumeter
