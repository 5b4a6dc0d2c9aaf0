#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace gpumeter {

inline constexpr std::size_t kFnv1aDigits = 8;

/// FNV-1a of 32 bits (offset basis and prime of draft-eastlake-fnv) as lower-case hexadecimal digits, to keep
/// texts apart whose ends are cut off. Any thread.
inline std::string fnv1a_digits(std::string_view text) {
  std::uint32_t hash = 2166136261U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  std::string digits(kFnv1aDigits, '0');
  for (auto digit = digits.rbegin(); digit != digits.rend(); ++digit, hash >>= 4) {
    *digit = "0123456789abcdef"[hash & 15];
  }
  return digits;
}

}  // namespace gpumeter
