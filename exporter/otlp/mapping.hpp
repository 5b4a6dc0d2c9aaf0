#pragma once

#include <span>
#include <string>
#include <string_view>

#include "collectors/api/descriptor.hpp"
#include "collectors/api/series.hpp"
#include "exporter/store/labels.hpp"

/// How series are called in OpenTelemetry: by its semantic conventions for hardware as far as these reach,
/// otherwise by their own names.
namespace gpumeter::otlp {

/// The conventions' version that the table follows: all of `hw.*` is still in development.
inline constexpr std::string_view kSchemaUrl = "https://opentelemetry.io/schemas/1.44.0";

/// A metric of the conventions: how a series of a family is called.
struct Mapping {
  const MetricDescriptor* family;
  LabelSet::Pair only;  ///< label of the series that are meant; no name: all of the family
  std::string_view name;
  std::string_view unit;
  /// gauge; counter: a monotonic sum; untyped: a sum that also falls, which the conventions call
  /// UpDownCounter.
  MetricType type;
  bool is_integer;
  LabelSet::Pair added;  ///< an attribute that the labels do not have
};
std::span<const Mapping> mappings() noexcept;

/// Returns null if the conventions have no name for the series.
const Mapping* mapping_of(const MetricDescriptor& family, const Labels& labels);
/// The attribute in place of a label of a series that has a mapping.
std::string_view attribute_of(std::string_view label) noexcept;
/// The unit in UCUM's code, "By" for "bytes". A Prometheus that receives it calls the metric as the page
/// does.
std::string_view unit_of(const MetricDescriptor& family) noexcept;

/// Returns docs/otlp.md.
std::string markdown();

}  // namespace gpumeter::otlp
