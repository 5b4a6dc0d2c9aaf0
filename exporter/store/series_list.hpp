#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "exporter/store/source.hpp"

namespace gpumeter {

/// For a producer that rebuilds the whole list of its series each time, such as the daemon's own metrics. If
/// the list has the same series in the same order, only values are written. One thread.
class SeriesList {
 public:
  explicit SeriesList(Source source) : source_(std::move(source)) {}

  /// Adds the next series of the list.
  void add(const MetricDescriptor& family, const Labels& labels, double value,
           SeriesPart part = SeriesPart::value);
  /// Ends the list and commits it as of `now`; the next add() begins another.
  void commit(Nanoseconds now);

 private:
  struct Entry {
    const MetricDescriptor* family;
    Labels labels;
    SeriesPart part;
    Source::Slot slot;

    bool is(const MetricDescriptor& other, const Labels& its_labels, SeriesPart its_part) const noexcept {
      return family == &other && labels == its_labels && part == its_part;
    }
  };

  void shorten(std::size_t length);

  Source source_;
  std::vector<Entry> entries_;
  std::size_t next_ = 0;
};

}  // namespace gpumeter
