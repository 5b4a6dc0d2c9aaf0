#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "collectors/api/descriptor.hpp"
#include "collectors/api/series.hpp"
#include "exporter/store/labels.hpp"

/// What a page from outside says.
namespace gpumeter::pages {

struct Page {
  struct Series {
    SeriesPart part = SeriesPart::value;
    std::vector<Label> pairs;  ///< in the page's order, with `le` and `quantile`; valid UTF-8
    double value = 0;
    std::size_t line = 0;  ///< from 1
    Labels labels{};       ///< set by sign(), as is the next
    Labels key{};          ///< sorted and without `le` and `quantile`: equal for the parts of one metric
  };
  /// The parts of a histogram or summary are together: its buckets or quantiles ascending, then its sum, then
  /// its count.
  struct Family {
    std::string name;
    std::optional<std::string> help;  ///< without escapes; nullopt: the page has none
    MetricType type = MetricType::untyped;
    std::size_t line = 0;  ///< of its first line of any kind
    std::vector<Series> series;
  };
  std::vector<Family> families;     ///< in the page's order, each with at least one series
  std::optional<Duration> expires;  ///< by its line `# gpumeter: expires DURATION`

  std::size_t size() const noexcept {  ///< the number of series
    std::size_t size = 0;
    for (const Family& family : families) size += family.series.size();
    return size;
  }
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
Page read_page(std::string_view text, std::size_t most_series, std::optional<BadLine>& wrong);

/// The owner of a file, who answers for what it says.
struct Author {
  std::uint32_t uid = 0;
  std::string name;         ///< or the uid in digits
  bool is_trusted = false;  ///< root or a program of gpumeter: may use every name, and has no label `author`
  bool operator==(const Author&) const = default;
};

/// The labels `gpu` and `uuid` of each device.
using Devices = std::vector<std::pair<std::string, std::string>>;

/// Adds the author's label and completes `gpu` and `uuid` from each other where the device is known. Wrong
/// are names and labels by which this author would speak for gpumeter, for Prometheus or for another user.
std::optional<BadLine> sign(Page& page, const Author& author, const Devices& devices);

}  // namespace gpumeter::pages
