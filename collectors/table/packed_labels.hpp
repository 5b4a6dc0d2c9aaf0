#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "collectors/api/series.hpp"

namespace gpumeter {

/// A LabelSet in a row of a table: 56 bytes instead of 96, because the tables have 1500 rows. The texts are
/// not copied.
class PackedLabels {
 public:
  /// Longest name or value, in bytes. A table with a longer one does not compile; at run time it is cut.
  static constexpr std::size_t kLongestText = std::numeric_limits<std::uint8_t>::max();

  constexpr PackedLabels() = default;
  constexpr PackedLabels(const LabelSet& labels) {  // NOLINT(google-explicit-constructor): the same labels
    for (std::size_t i = 0; i < kPairs; ++i) {
      pack(2 * i, labels.pairs[i].name);
      pack(2 * i + 1, labels.pairs[i].value);
    }
  }

  constexpr LabelSet unpacked() const noexcept {
    LabelSet labels;
    for (std::size_t i = 0; i < kPairs; ++i) labels.pairs[i] = {text(2 * i), text(2 * i + 1)};
    return labels;
  }

  constexpr bool operator==(const PackedLabels& other) const noexcept {
    return unpacked() == other.unpacked();
  }

 private:
  static constexpr std::size_t kPairs = std::tuple_size_v<decltype(LabelSet::pairs)>;

  constexpr std::string_view text(std::size_t i) const noexcept { return {texts_[i], sizes_[i]}; }
  constexpr void pack(std::size_t i, std::string_view text) {
    if (std::is_constant_evaluated() && text.size() > kLongestText) throw text;
    texts_[i] = text.data();
    sizes_[i] = static_cast<std::uint8_t>(std::min(text.size(), kLongestText));
  }

  // Names and values in turn.
  std::array<const char*, 2 * kPairs> texts_{};
  std::array<std::uint8_t, 2 * kPairs> sizes_{};
};

}  // namespace gpumeter
