#include "exporter/text/family_series.hpp"

namespace gpumeter {

bool FamilySeries::refresh(const Family& family, const PageSelection& selection, std::uint64_t selected) {
  if (version_ == family.version() && selected_ == selected) return false;
  if (selected_ != selected) late_.clear();
  version_ = family.version();
  selected_ = selected;
  is_counter_ = family.descriptor().type == MetricType::counter;
  appearances_.clear();
  const FamilySelection of_family(selection, family.descriptor());
  if (!of_family.is_whole()) decide(family, of_family);
  return true;
}

void FamilySeries::decide(const Family& family, const FamilySelection& selection) {
  std::map<Key, Late> known;
  known.swap(late_);
  family.for_each_listed([&](const Labels& labels, SeriesPart part) {
    const Appearance appearance = selection.appearance_of(labels);
    appearances_.push_back(appearance);
    if (appearance != Appearance::nonzero || !is_counter_) return;
    const Key key(labels.id(), part);
    const auto before = known.find(key);
    late_.insert_or_assign(key, before == known.end() ? Late{labels} : std::move(before->second));
  });
  appearances_.shrink_to_fit();
}

Shown FamilySeries::look_at(const Series& series, const PageTime& now) noexcept {
  const Appearance appearance = appearances_[series.position()];
  if (appearance == Appearance::never) return {};
  if (appearance == Appearance::always) return {true, series.value(), series.since()};
  if (!is_counter_) return {series.value() != 0, series.value(), 0};
  const auto late = late_.find({series.labels().id(), series.part()});
  return late == late_.end() ? Shown{} : late->second.series.counter(series.value(), now);
}

}  // namespace gpumeter
