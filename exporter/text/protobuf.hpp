#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/api/descriptor.hpp"
#include "exporter/store/labels.hpp"
#include "exporter/store/store.hpp"
#include "exporter/text/selection.hpp"

/// Prometheus' protobuf exposition: messages io.prometheus.client.MetricFamily, each after its length
/// (https://github.com/prometheus/client_model, io/prometheus/client/metrics.proto). Unlike the text formats,
/// it has the start time of a counter where Prometheus reads it.
namespace gpumeter::protobuf {

/// Field numbers of metrics.proto.
namespace field {
inline constexpr unsigned kFamilyName = 1, kFamilyHelp = 2, kFamilyType = 3, kFamilyMetric = 4;
inline constexpr unsigned kMetricLabel = 1, kMetricGauge = 2, kMetricCounter = 3, kMetricSummary = 4,
                          kMetricUntyped = 5, kMetricHistogram = 7;
inline constexpr unsigned kLabelName = 1, kLabelValue = 2;
inline constexpr unsigned kValue = 1, kCounterCreated = 3;
inline constexpr unsigned kSampleCount = 1, kSampleSum = 2,
                          kBucket = 3;  ///< of histograms; kBucket: also the quantiles of summaries
inline constexpr unsigned kCumulativeCount = 1, kUpperBound = 2;
inline constexpr unsigned kQuantile = 1, kQuantileValue = 2;
inline constexpr unsigned kSeconds = 1, kNanos = 2;  ///< of google.protobuf.Timestamp
}  // namespace field

void append_varint(std::uint64_t value, std::string& to);
/// A field of a number, a double, and a text or message.
void append_number(unsigned field, std::uint64_t value, std::string& to);
void append_double(unsigned field, double value, std::string& to);
void append_bytes(unsigned field, std::string_view bytes, std::string& to);

/// The fields of a MetricFamily before its metrics: name, help, type.
std::string family_fields(const MetricDescriptor& family);
/// The label fields of a Metric.
std::string label_fields(const Labels& labels);

/// The metrics of one family, made from its series in their order.
class FamilyMessage {
 public:
  explicit FamilyMessage(const MetricDescriptor& family) : family_(family) {}

  /// `labels`: label_fields() of the series, which a histogram's series does not need.
  void add(const Series& series, std::string_view labels, const Shown& shown);
  /// Appends the message and its length, unless it has no metric.
  void append_to(std::string& out, std::string_view family_fields) const;

 private:
  void add_value(std::string_view labels, const Shown& shown);
  void add_part(const Series& series, double value);
  void end_metric(std::string_view labels, unsigned kind, std::string_view value);

  const MetricDescriptor& family_;
  std::string metrics_;
  std::string
      parts_;  ///< of a histogram or summary: the buckets or quantiles, and the sum, before their count
};

}  // namespace gpumeter::protobuf
