#include "exporter/store/series_list.hpp"

namespace gpumeter {

// From the first difference on, all slots are new, which keeps the series in the order of the list.
void SeriesList::add(const MetricDescriptor& family, const Labels& labels, double value, SeriesPart part) {
  if (next_ == entries_.size() || !entries_[next_].is(family, labels, part)) {
    shorten(next_);
    entries_.push_back({&family, labels, part, source_.add(family, labels, part)});
  }
  source_.set(entries_[next_++].slot, value);
}

void SeriesList::commit(Nanoseconds now) {
  shorten(std::exchange(next_, 0));
  source_.commit(now);
}

void SeriesList::shorten(std::size_t length) {
  while (entries_.size() > length) {
    source_.drop(entries_.back().slot);
    entries_.pop_back();
  }
}

}  // namespace gpumeter
