#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/text.hpp"
#include "exporter/store/store.hpp"
#include "exporter/text/selection.hpp"

/// What the views for other programs have of a series. One thread at a time.
namespace gpumeter {

/// The age up to which the first event of a counter that pages omit while it is 0 is shown as a 0: increase()
/// counts from a counter's first sample on. Longer than the longest interval of scrapes for which the rules
/// are made (1 m), so that every scraper gets a 0.
inline constexpr Nanoseconds kZeroFirst = std::chrono::seconds(70);

/// The time at which a page is rendered.
struct PageTime {
  Nanoseconds monotonic{};
  Nanoseconds realtime{};
};

/// What a page has of a series. `since`: Unix time since which a counter counts, in seconds; 0: unknown.
struct Shown {
  bool is_shown = false;
  double value = 0;
  double since = 0;
};

/// A counter that pages omit while it is 0. Pages have its first event as a rise: for a while the value is 0,
/// and `since` is the time of the last page without it.
class LateSeries {
 public:
  Shown show(double value, const PageTime& now) noexcept {
    const bool begins = !has_begun_ && value != 0;
    const bool was_reset = has_begun_ && value < last_;
    if ((begins && was_zero_) || was_reset) since_ = to_seconds(last_page_);
    if (begins) zero_until_ = now.monotonic + (was_zero_ ? kZeroFirst : Nanoseconds{});
    has_begun_ = has_begun_ || begins;
    was_zero_ = was_zero_ || value == 0;
    last_ = value;
    last_page_ = now.realtime;
    if (!has_begun_) return {};
    return {true, now.monotonic < zero_until_ ? 0 : value, since_};
  }

 private:
  bool was_zero_ = false;     ///< on an earlier page
  bool has_begun_ = false;    ///< it is on the page
  double last_ = 0;           ///< the value of the last page
  Nanoseconds last_page_{};   ///< its CLOCK_REALTIME
  Nanoseconds zero_until_{};  ///< CLOCK_MONOTONIC
  double since_ = 0;
};

/// The series of one family on the page. Whether a series is on the page is decided once, when the list of
/// series or the selection changes.
class FamilySeries {
 public:
  /// Returns false if nothing has changed since the last call. To be called before the functions below.
  /// `selected`: the version of the selection.
  bool refresh(const Family& family, const PageSelection& selection, std::uint64_t selected) {
    if (version_ == family.version() && selected_ == selected) return false;
    if (selected_ != selected) late_.clear();
    version_ = family.version();
    selected_ = selected;
    is_counter_ = family.descriptor().type == MetricType::counter;
    appearances_.clear();
    if (!selection.is_whole(family.descriptor())) decide(family, selection);
    return true;
  }

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

  void decide(const Family& family, const PageSelection& selection) {
    std::map<Key, Late> known;
    known.swap(late_);
    family.for_each_listed([&](const Labels& labels, SeriesPart part) {
      const Appearance appearance = selection.appearance_of(family.descriptor(), labels);
      appearances_.push_back(appearance);
      if (appearance != Appearance::nonzero || !is_counter_) return;
      const Key key(labels.id(), part);
      const auto before = known.find(key);
      late_.insert_or_assign(key, before == known.end() ? Late{labels} : std::move(before->second));
    });
    appearances_.shrink_to_fit();
  }

  Shown look_at(const Series& series, const PageTime& now) noexcept {
    const Appearance appearance = appearances_[series.position()];
    if (appearance == Appearance::never) return {};
    if (appearance == Appearance::always) return {true, series.value(), series.since()};
    if (!is_counter_) return {series.value() != 0, series.value(), 0};
    const auto late = late_.find({series.labels().id(), series.part()});
    return late == late_.end() ? Shown{} : late->second.series.show(series.value(), now);
  }

  std::uint64_t version_ = 0;
  std::uint64_t selected_ = 0;
  bool is_counter_ = false;
  std::vector<Appearance> appearances_;  ///< by position; empty: all are always on the page
  std::map<Key, Late> late_;             ///< series with Appearance::nonzero, over changes of the list
};

/// Receivers reject a page with a text that is not UTF-8.
inline std::string valid_utf8(std::string_view text) {
  return readable(text, [](char32_t) { return false; });
}

/// The bound of a bucket (`le`) or the `quantile` that the label names.
inline double bound_of(const Labels& labels, std::string_view label) noexcept {
  for (const auto& [name, value] : labels.pairs()) {
    if (name == label) return parse_number<double>(value).value_or(std::numeric_limits<double>::infinity());
  }
  return std::numeric_limits<double>::infinity();
}

}  // namespace gpumeter
