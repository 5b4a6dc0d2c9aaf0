#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "exporter/store/store.hpp"

namespace gpumeter {

/// For a producer that rebuilds the whole list of its series each time, such as the daemon's own metrics. If
/// the list has the same series in the same order, only values are written. One thread.
class SeriesList {
 public:
  explicit SeriesList(Source source) : source_(std::move(source)) {}

  /// Adds the next series of the list. `since` and `is_lasting`: as those of Series.
  void add(const MetricDescriptor& family, const Labels& labels, double value,
           SeriesPart part = SeriesPart::value, double since = 0, bool is_lasting = false) {
    // From the first difference on, all slots are new, which keeps the series in the order of the list.
    if (next_ == entries_.size() || !entries_[next_].is(family, labels, part, since)) {
      shorten(next_);
      entries_.push_back(
          {&family, labels, part, since, source_.add(family, labels, part, since, is_lasting)});
    }
    source_.set(entries_[next_++].slot, value);
  }
  /// Ends the list and commits it as of `now`; the next add() begins another.
  void commit(Nanoseconds now) {
    shorten(std::exchange(next_, 0));
    source_.commit(now);
  }

 private:
  struct Entry {
    const MetricDescriptor* family;
    Labels labels;
    SeriesPart part;
    double since;
    Source::Slot slot;

    bool is(const MetricDescriptor& other, const Labels& its_labels, SeriesPart its_part,
            double its_since) const noexcept {
      return family == &other && labels == its_labels && part == its_part && since == its_since;
    }
  };

  void shorten(std::size_t length) {
    while (entries_.size() > length) {
      source_.drop(entries_.back().slot);
      entries_.pop_back();
    }
  }

  Source source_;
  std::vector<Entry> entries_;
  std::size_t next_ = 0;
};

}  // namespace gpumeter
