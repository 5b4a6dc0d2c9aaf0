#include "exporter/text/selection.hpp"

#include <algorithm>

namespace gpumeter {
namespace {

std::vector<const SeriesPattern*> for_family(const std::vector<SeriesPattern>& patterns,
                                             std::string_view name) {
  std::vector<const SeriesPattern*> matching;
  for (const SeriesPattern& pattern : patterns) {
    if (pattern.matches_name(name)) matching.push_back(&pattern);
  }
  return matching;
}

Appearance appearance_at(Detail::Level level) noexcept {
  if (level == Detail::Level::standard) return Appearance::always;
  return level == Detail::Level::nonzero ? Appearance::nonzero : Appearance::never;
}

}  // namespace

FamilySelection::FamilySelection(const PageSelection& selection, const MetricDescriptor& family)
    : family_(family),
      is_full_(selection.is_full),
      include_(for_family(selection.include, family.name)),
      exclude_(for_family(selection.exclude, family.name)),
      is_whole_(exclude_.empty() && (is_full_ || family.detail.level == Detail::Level::standard)) {}

Appearance FamilySelection::appearance_of(const Labels& labels) const {
  const std::vector<Labels::Pair> pairs = labels.pairs();
  const auto is_selected = [&pairs](const SeriesPattern* by) { return by->matches_labels(pairs); };
  if (std::ranges::any_of(include_, is_selected)) return Appearance::always;
  if (std::ranges::any_of(exclude_, is_selected)) return Appearance::never;
  const Detail& detail = family_.detail;
  const auto is_named = [&detail](const Labels::Pair& pair) {
    return pair.first == detail.label && pair.second == detail.value;
  };
  const bool is_always = is_full_ || std::ranges::any_of(pairs, is_named);
  return is_always ? Appearance::always : appearance_at(detail.level);
}

}  // namespace gpumeter
