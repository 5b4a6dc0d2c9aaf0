#include "exporter/store/family.hpp"

#include <algorithm>
#include <functional>
#include <tuple>
#include <unordered_map>

namespace gpumeter {

void Family::invalidate() noexcept {
  version_ = 0;
  lines_.clear();
}

void Family::arrange(std::uint64_t version) {
  version_ = version;
  std::ranges::sort(lines_, {}, [](const Line& line) {
    return std::tuple(line.stored().labels.order(), line.source->age, line.stored().rank);
  });
  shadow_duplicates();
}

/// Prometheus rejects a whole page with two lines of the same series. The youngest source shows it, and
/// within a source its first slot.
void Family::shadow_duplicates() {
  struct Hash {
    std::size_t operator()(const std::pair<const void*, Part>& key) const noexcept {
      return std::hash<const void*>()(key.first) + static_cast<std::size_t>(key.second);
    }
  };
  std::unordered_map<std::pair<const void*, Part>, Line*, Hash> shown;
  shown.reserve(lines_.size());
  for (Line& line : lines_) {
    line.is_shadowed = false;
    const auto [found, is_first] = shown.try_emplace({line.stored().labels.id(), line.stored().part}, &line);
    if (is_first) continue;
    Line*& winner = found->second;
    Line* loser = &line;
    if (line.source->age > winner->source->age) std::swap(winner, loser);
    loser->is_shadowed = true;
  }
}

}  // namespace gpumeter
