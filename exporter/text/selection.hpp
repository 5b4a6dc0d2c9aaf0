#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/options.hpp"
#include "base/result.hpp"
#include "base/text.hpp"
#include "collectors/api/descriptor.hpp"
#include "exporter/store/labels.hpp"

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
  using Glob = std::vector<std::string>;  ///< the literal parts between the wildcards of a text; at least one

  std::string text_;  ///< as parsed
  Glob name_{""};
  std::vector<std::pair<std::string, Glob>> labels_;
};

enum class MetricsDetail : std::uint8_t { standard, full };
inline constexpr EnumNames<MetricsDetail, 2> kMetricsDetailNames = {
    {{MetricsDetail::standard, "standard"}, {MetricsDetail::full, "full"}}};
constexpr const auto& names_of(MetricsDetail) noexcept { return kMetricsDetailNames; }

/// How the page has a series.
enum class Appearance : std::uint8_t {
  always,   ///< whenever it has a value
  nonzero,  ///< as for Detail::Level::nonzero
  never,
};

/// The series of the page for Prometheus: `metrics` in the configuration. All other views of the store have
/// all series. The default has what the shipped rules, alerts and dashboards read: Prometheus keeps every
/// series in memory, and most of the others are a 0 that never changes.
struct PageSelection {
  MetricsDetail detail = MetricsDetail::standard;  ///< standard: by MetricDescriptor::detail
  std::vector<SeriesPattern> include = {};         ///< on the page in any case; has precedence over `exclude`
  std::vector<SeriesPattern> exclude = {};
  bool operator==(const PageSelection&) const = default;

  /// True if every series of the family is always on the page.
  bool is_whole(const MetricDescriptor& family) const noexcept;
  Appearance appearance_of(const MetricDescriptor& family, const Labels& labels) const;
};
extern const options::Section kMetricsSection;

/// An option's value; see base/options.hpp. A complaint has the line of its pattern.
std::string type_words(const std::vector<SeriesPattern>&);
options::Complaint read(const options::Node& node, std::vector<SeriesPattern>& patterns);
std::string show(const std::vector<SeriesPattern>& patterns);

}  // namespace gpumeter
