#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gpumeter {

/// summary and untyped: families of pages from outside only.
enum class MetricType : std::uint8_t { gauge, counter, histogram, summary, untyped };

/// Prometheus' name of the type.
constexpr std::string_view to_string(MetricType type) noexcept {
  constexpr std::string_view kNames[] = {"gauge", "counter", "histogram", "summary", "untyped"};
  return kNames[static_cast<std::size_t>(type)];
}

/// The part of its family that a series is: the whole value (of a summary: a quantile), or a part of a
/// histogram or summary. A fine_bucket is a bucket that classic histograms leave out, because they have fewer
/// bounds (collectors/api/buckets.hpp).
enum class SeriesPart : std::uint8_t { value, bucket, sum, count, fine_bucket };

/// The suffix that follows the family's name in the name of such a series.
constexpr std::string_view suffix_of(SeriesPart part) noexcept {
  constexpr std::string_view kSuffixes[] = {"", "_bucket", "_sum", "_count", "_bucket"};
  return kSuffixes[static_cast<std::size_t>(part)];
}

/// The series of a family on the standard page (`metrics.detail: standard`). The full page has all of them.
struct Detail {
  enum class Level : std::uint8_t {
    standard,  ///< all
    nonzero,   ///< gauges while they are not 0; counters from their first event on
    full,      ///< none
  };
  Level level = Level::standard;
  /// Series with this label are on the standard page in any case; empty: the level holds for all series.
  std::string_view label = {};
  std::string_view value = {};
};
inline constexpr Detail kFullPageOnly{Detail::Level::full};
inline constexpr Detail kWhileNonzero{Detail::Level::nonzero};

/// One metric family. constexpr with static storage; its address is its identity. The page, docs, dashboards
/// and alert checks all read the one list in catalog.hpp.
struct MetricDescriptor {
  std::string_view name;  ///< as exported; counters with their `_total`
  std::string_view help;  ///< one or more sentences, ending with a full stop
  std::string_view unit;  ///< base unit and suffix of the name ("seconds"); empty if there is none
  MetricType type;
  Detail detail = {};
};

/// A name that Prometheus' text format accepts.
constexpr bool is_metric_name(std::string_view name) noexcept {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == ':';
  };
  if (name.empty() || !is_letter(name.front())) return false;
  for (const char c : name) {
    if (!is_letter(c) && (c < '0' || c > '9')) return false;
  }
  return true;
}

/// The naming rules that promtool and OpenMetrics parsers enforce.
constexpr bool is_valid(const MetricDescriptor& metric) noexcept {
  std::string_view stem = metric.name;
  const bool total = stem.ends_with("_total");
  if (total) stem.remove_suffix(6);
  for (const char c : metric.name) {
    if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_')) return false;
  }
  const bool unit_is_suffix =
      metric.unit.empty() || (stem.ends_with(metric.unit) && stem.size() > metric.unit.size() + 1 &&
                              stem[stem.size() - metric.unit.size() - 1] == '_');
  return !stem.empty() && total == (metric.type == MetricType::counter) && unit_is_suffix &&
         metric.help.ends_with('.');
}

}  // namespace gpumeter
