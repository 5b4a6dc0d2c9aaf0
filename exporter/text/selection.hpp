#pragma once

#include <cstdint>
#include <vector>

#include "base/enum_names.hpp"
#include "base/options.hpp"
#include "base/series_pattern.hpp"
#include "collectors/api/descriptor.hpp"
#include "exporter/store/labels.hpp"

namespace gpumeter {

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

}  // namespace gpumeter
