#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/options.hpp"
#include "base/result.hpp"
#include "base/text.hpp"
#include "collectors/api/descriptor.hpp"
#include "exporter/store/labels.hpp"
#include "exporter/store/store.hpp"

namespace gpumeter {

/// Selects series by the name of their family and by labels: `gpu_link_*`, `gpu_xid_errors_total{xid="31"}`.
/// `*` in a name or a value is any text, also an empty one. Every label of the pattern must be on the series.
/// `\` makes the next character of a value literal. Immutable. Any thread.
class SeriesPattern {
 public:
  /// The error is the correction: "must be ...".
  static Result<SeriesPattern> parse(std::string_view text);

  const std::string& text() const noexcept { return text_; }
  bool operator==(const SeriesPattern& other) const noexcept { return text_ == other.text_; }

  bool matches_name(std::string_view family) const noexcept;
  /// For a series whose family's name matches.
  bool matches_labels(const std::vector<Labels::Pair>& labels) const noexcept;

 private:
  /// A text with wildcards: the literal parts between the wildcards.
  class Glob {
   public:
    Glob() : parts_(1) {}
    void add(char literal) { parts_.back() += literal; }
    void add_wildcard() { parts_.emplace_back(); }
    bool matches(std::string_view text) const noexcept;

   private:
    std::vector<std::string> parts_;  ///< at least one
  };
  struct Label {
    std::string name;
    Glob value = {};
  };

  static bool take_name(std::string_view& text, Glob& name);
  static bool take_value(std::string_view& text, Glob& value);
  bool take_labels(std::string_view& text);

  std::string text_;  ///< as parsed
  Glob name_;
  std::vector<Label> labels_;
};

enum class MetricsDetail : std::uint8_t { standard, full };
inline constexpr EnumNames<MetricsDetail, 2> kMetricsDetailNames = {
    {{MetricsDetail::standard, "standard"}, {MetricsDetail::full, "full"}}};
constexpr const auto& names_of(MetricsDetail) noexcept { return kMetricsDetailNames; }

/// The series of the page for Prometheus: `metrics` in the configuration. All other views of the store have
/// all series. The default has what the shipped rules, alerts and dashboards read: Prometheus keeps every
/// series in memory, and most of the others are a 0 that never changes.
struct PageSelection {
  MetricsDetail detail = MetricsDetail::standard;  ///< standard: by MetricDescriptor::detail
  std::vector<SeriesPattern> include = {};         ///< on the page in any case; has precedence over `exclude`
  std::vector<SeriesPattern> exclude = {};
  bool operator==(const PageSelection&) const = default;
};
extern const options::Section kMetricsSection;

/// How the page has a series.
enum class Appearance : std::uint8_t {
  always,   ///< whenever it has a value
  nonzero,  ///< as for Detail::Level::nonzero
  never,
};

/// The selection of one family's series. Refers to the selection and the descriptor that it is made from.
class FamilySelection {
 public:
  FamilySelection(const PageSelection& selection, const MetricDescriptor& family);

  /// True if every series of the family is always on the page.
  bool is_whole() const noexcept { return is_whole_; }
  Appearance appearance_of(const Labels& labels) const;

 private:
  const MetricDescriptor& family_;
  const bool is_full_;
  std::vector<const SeriesPattern*> include_;  ///< those that match the family's name
  std::vector<const SeriesPattern*> exclude_;
  const bool is_whole_;
};

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

/// A series that pages omit while it is 0. increase() counts from a counter's first sample on, so pages have
/// the counter's first event as a rise: for a while the value is 0, and `since` is the time of the last page
/// without it. One thread.
class LateSeries {
 public:
  /// Longer than the longest interval of scrapes for which the rules are made (1 m), so that every scraper
  /// gets a 0.
  static constexpr Nanoseconds kZeroFirst = std::chrono::seconds(70);

  Shown counter(double value, const PageTime& now) noexcept;

 private:
  bool was_zero_ = false;     ///< on an earlier page
  bool has_begun_ = false;    ///< it is on the page
  double last_ = 0;           ///< the value of the last page
  Nanoseconds last_page_{};   ///< its CLOCK_REALTIME
  Nanoseconds zero_until_{};  ///< CLOCK_MONOTONIC
  double since_ = 0;
};

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
