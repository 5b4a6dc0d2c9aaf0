#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "exporter/store/family.hpp"
#include "exporter/text/late_series.hpp"
#include "exporter/text/selection.hpp"

namespace gpumeter {

/// The series of one family on the page. Whether a series is on the page is decided once, when the list of
/// series or the selection changes. One thread.
class FamilySeries {
 public:
  /// Returns false if nothing has changed since the last call. To be called before the functions below.
  /// `selected`: the version of the selection.
  bool refresh(const Family& family, const PageSelection& selection, std::uint64_t selected);

  /// True if the series at this position of the list may be on the page.
  bool may_show(std::size_t position) const noexcept {
    return appearances_.empty() || appearances_[position] != Appearance::never;
  }

  /// Calls visit(const Series&, const Shown&) for each series on the page.
  template <class Visit>
  void for_each(const Family& family, const PageTime& now, Visit&& visit) {
    family.for_each([&](const Series& series) {
      const Shown shown =
          appearances_.empty() ? Shown{true, series.value(), series.since()} : look_at(series, now);
      if (shown.is_shown) visit(series, shown);
    });
  }

 private:
  using Key = std::pair<const void*, SeriesPart>;  ///< Labels::id()
  struct Late {
    Labels labels;  ///< keep their id from being used again
    LateSeries series = {};
  };

  void decide(const Family& family, const FamilySelection& selection);
  Shown look_at(const Series& series, const PageTime& now) noexcept;

  std::uint64_t version_ = 0;
  std::uint64_t selected_ = 0;
  bool is_counter_ = false;
  std::vector<Appearance> appearances_;  ///< by position; empty: all are always on the page
  std::map<Key, Late> late_;             ///< series with Appearance::nonzero, over changes of the list
};

}  // namespace gpumeter
