#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace gpumeter {

/// The names of an enum's `N` values.
template <class Enum, std::size_t N>
struct EnumNames {
  struct Row {
    Enum value;
    std::string_view name;
  };
  Row rows[N];

  constexpr const Row* begin() const noexcept { return rows; }
  constexpr const Row* end() const noexcept { return rows + N; }

  /// Returns an empty name for a value without one.
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
