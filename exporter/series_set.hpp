#pragma once

#include <string>
#include <utility>
#include <vector>

#include "collectors/api/descriptor.hpp"
#include "exporter/label_block.hpp"

namespace gpumeter {

/// Series that come and go, committed as a whole: the last set published under a name is what the page
/// shows. Only values that are known stand in it.
struct SeriesSet {
  struct Entry {
    const MetricDescriptor* family;
    LabelBlock labels;
    double value;
  };

  /// Whose they are, for `collect[]` and `exclude[]`; empty: nobody's, and on every page.
  std::string collector;
  std::vector<Entry> entries;

  void add(const MetricDescriptor& family, LabelBlock labels, double value) {
    entries.push_back({&family, std::move(labels), value});
  }
};

}  // namespace gpumeter
