#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace gpumeter {

/// The words of an enum's `N` values, each beside its value.
template <class Enum, std::size_t N>
struct EnumNames {
  struct Row {
    Enum value;
    std::string_view name;
  };
  Row rows[N];

  constexpr const Row* begin() const noexcept { return rows; }
  constexpr const Row* end() const noexcept { return rows + N; }

  /// Empty for a value without a name.
  constexpr std::string_view of(Enum value) const noexcept {
    for (const Row& row : rows) {
      if (row.value == value) return row.name;
    }
    return {};
  }

  constexpr std::optional<Enum> find(std::string_view name) const noexcept {
    for (const Row& row : rows) {
      if (row.name == name) return row.value;
    }
    return std::nullopt;
  }
};

}  // namespace gpumeter
