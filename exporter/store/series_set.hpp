#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collectors/api/descriptor.hpp"
#include "exporter/store/label_block.hpp"

namespace gpumeter {

/// Series that come and go, committed as a whole: the last set published under a name is what the page
/// shows. Only values that are known stand in it. Lines of one family stay in their order, so the buckets of
/// a histogram are added as they are to be read.
struct SeriesSet {
  struct Entry {
    const MetricDescriptor* family;
    LabelBlock labels;
    double value;
    /// Behind the family's name: `_bucket`, `_sum` or `_count` of a histogram, else empty. Static storage.
    std::string_view suffix = {};
  };

  /// Whose they are, for `collect[]` and `exclude[]`; empty: nobody's, and on every page.
  std::string collector;
  std::vector<Entry> entries;

  void add(const MetricDescriptor& family, LabelBlock labels, double value, std::string_view suffix = {}) {
    entries.push_back({&family, std::move(labels), value, suffix});
  }
};

}  // namespace gpumeter
