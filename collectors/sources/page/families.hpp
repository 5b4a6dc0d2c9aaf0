#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "collectors/api/descriptor.hpp"
#include "collectors/api/series.hpp"

namespace gpumeter {

/// A series of a page.
struct PageSeries {
  SeriesPart part = SeriesPart::value;
  std::vector<Label> labels;  ///< in the page's order, with `le` and `quantile`; valid UTF-8
  double value = 0;
  std::size_t line = 0;  ///< from 1
};

/// A family of a page. The parts of a histogram or summary are together: its buckets or quantiles ascending,
/// then its sum, then its count.
struct PageFamily {
  std::string name;
  std::optional<std::string> help;  ///< without escapes; nullopt: the page has none
  MetricType type = MetricType::untyped;
  std::size_t line = 0;  ///< of its first line of any kind
  std::vector<PageSeries> series;
};

/// What a page from outside says.
struct PageText {
  std::vector<PageFamily> families;  ///< in the page's order, each with at least one series
  std::optional<Duration> expires;   ///< by its line `# gpumeter: expires DURATION`
};

/// The longest DURATION of an `expires` line.
inline constexpr Duration kLongestPage = std::chrono::hours(24 * 31);

/// A page's line and what is wrong with it.
struct BadLine {
  std::size_t line = 0;
  std::string text;
};

/// Reads a whole page of Prometheus' text format (version 0.0.4), any bytes. One wrong line makes the whole
/// page wrong: what is not valid on the reader's own page, or would be another series there, is no part of
/// it. Wrong are therefore also timestamps, bytes that are not UTF-8, the same series twice, incomplete
/// histograms and summaries, counters below 0, and more than `most_series` series.
PageText read_page(std::string_view text, std::size_t most_series, std::optional<BadLine>& wrong);

}  // namespace gpumeter
