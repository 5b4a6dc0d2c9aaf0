#include "exporter/store/family.hpp"

#include <algorithm>
#include <tuple>

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

/// Prometheus rejects a whole page that contains the same series twice. The youngest source shows the series;
/// within a source, its first slot does.
void Family::shadow_duplicates() {
  std::vector<Line*> youngest_first;
  youngest_first.reserve(lines_.size());
  for (Line& line : lines_) youngest_first.push_back(&line);
  std::ranges::sort(youngest_first, {}, [](const Line* line) {
    const StoredSource::Slot& slot = line->stored();
    return std::tuple(slot.labels.id(), slot.part, ~line->source->age, slot.rank);
  });
  const Line* last = nullptr;
  for (Line* line : youngest_first) {
    const StoredSource::Slot& slot = line->stored();
    line->is_shadowed =
        last != nullptr && last->stored().labels == slot.labels && last->stored().part == slot.part;
    last = line;
  }
}

}  // namespace gpumeter
