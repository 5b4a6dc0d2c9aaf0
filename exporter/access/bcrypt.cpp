#include "exporter/access/bcrypt.hpp"

#include <crypt.h>
#include <string.h>

#include <algorithm>
#include <cstddef>
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

}  // namespace gpumeter
