#include "config/suggest.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

namespace gpumeter::config {
namespace {

/// Levenshtein's distance, one row of the matrix at a time.
std::size_t edit_distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (const char c : from) {
    std::size_t diagonal = row[0]++;
    for (std::size_t i = 0; i < to.size(); ++i) {
      const std::size_t replaced = diagonal + (c == to[i] ? 0U : 1U);
      diagonal = row[i + 1];
      row[i + 1] = std::min({replaced, row[i] + 1, row[i + 1] + 1});
    }
  }
  return row.back();
}

// The limit bounds the cost, which grows with the square of the length. A longer word is no misspelled key.
constexpr std::size_t kLongestWord = 64;

}  // namespace

std::string nearest(std::string_view word, std::span<const std::string> candidates) {
  if (word.size() > kLongestWord) return {};
  std::size_t least = std::max<std::size_t>(2, word.size() / 5) + 1;
  std::string best;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance >= least || distance >= candidate.size()) continue;
    least = distance;
    best = candidate;
  }
  return best;
}

}  // namespace gpumeter::config
