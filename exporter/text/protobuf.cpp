#include "exporter/text/protobuf.hpp"

#include <bit>
#include <cmath>
#include <limits>

#include "base/text.hpp"

namespace gpumeter::protobuf {
namespace {

// Wire types of the encoding.
constexpr unsigned kVarint = 0, kFixed64 = 1, kLengthDelimited = 2;

/// Values of MetricType.
std::uint64_t type_number(MetricType type) noexcept {
  constexpr std::uint64_t kNumbers[] = {1, 0, 4, 2, 3};  // GAUGE, COUNTER, HISTOGRAM, SUMMARY, UNTYPED
  return kNumbers[static_cast<std::size_t>(type)];
}

void append_tag(unsigned field, unsigned wire_type, std::string& to) {
  append_varint((std::uint64_t{field} << 3U) | wire_type, to);
}

/// Receivers reject a page with a text that is not UTF-8.
std::string valid(std::string_view text) {
  return readable(text, [](char32_t) { return false; });
}

std::string timestamp(double unix_seconds) {
  constexpr double kNanosPerSecond = 1e9;
  const double whole = std::floor(unix_seconds);
  std::string message;
  append_number(field::kSeconds, static_cast<std::uint64_t>(whole), message);
  append_number(field::kNanos, static_cast<std::uint64_t>((unix_seconds - whole) * kNanosPerSecond), message);
  return message;
}

double bound_of(const Labels& labels, std::string_view label) noexcept {
  for (const auto& [name, value] : labels.pairs()) {
    if (name == label) return parse_number<double>(value).value_or(std::numeric_limits<double>::infinity());
  }
  return std::numeric_limits<double>::infinity();
}

unsigned metric_field(MetricType type) noexcept {
  if (type == MetricType::counter) return field::kMetricCounter;
  return type == MetricType::untyped ? field::kMetricUntyped : field::kMetricGauge;
}

}  // namespace

void append_varint(std::uint64_t value, std::string& to) {
  for (; value >= 0x80U; value >>= 7U) to += static_cast<char>((value & 0x7FU) | 0x80U);
  to += static_cast<char>(value);
}

void append_number(unsigned field, std::uint64_t value, std::string& to) {
  append_tag(field, kVarint, to);
  append_varint(value, to);
}

void append_double(unsigned field, double value, std::string& to) {
  append_tag(field, kFixed64, to);
  auto bits = std::bit_cast<std::uint64_t>(value);
  for (int byte = 0; byte < 8; ++byte, bits >>= 8U) to += static_cast<char>(bits & 0xFFU);
}

void append_bytes(unsigned field, std::string_view bytes, std::string& to) {
  append_tag(field, kLengthDelimited, to);
  append_varint(bytes.size(), to);
  to += bytes;
}

std::string family_fields(const MetricDescriptor& family) {
  std::string fields;
  append_bytes(field::kFamilyName, family.name, fields);
  append_bytes(field::kFamilyHelp, valid(family.help), fields);
  append_number(field::kFamilyType, type_number(family.type), fields);
  return fields;
}

std::string label_fields(const Labels& labels) {
  std::string fields;
  std::string pair;
  for (const auto& [name, value] : labels.pairs()) {
    pair.clear();
    append_bytes(field::kLabelName, name, pair);
    append_bytes(field::kLabelValue, valid(value), pair);
    append_bytes(field::kMetricLabel, pair, fields);
  }
  return fields;
}

void FamilyMessage::add(const Series& series, std::string_view labels, const Shown& shown) {
  const bool is_whole = series.part() == SeriesPart::value && family_.type != MetricType::summary;
  is_whole ? add_value(labels, shown) : add_part(series, shown.value);
}

void FamilyMessage::add_value(std::string_view labels, const Shown& shown) {
  std::string value;
  append_double(field::kValue, shown.value, value);
  const bool is_counter = family_.type == MetricType::counter;
  if (is_counter && shown.since > 0) append_bytes(field::kCounterCreated, timestamp(shown.since), value);
  end_metric(labels, metric_field(family_.type), value);
}

// A source adds the buckets of a histogram, or the quantiles of a summary, first, then its sum, then its
// count.
void FamilyMessage::add_part(const Series& series, double value) {
  if (series.part() == SeriesPart::bucket) {
    std::string bucket;
    append_number(field::kCumulativeCount, static_cast<std::uint64_t>(value), bucket);
    append_double(field::kUpperBound, bound_of(series.labels(), "le"), bucket);
    append_bytes(field::kBucket, bucket, parts_);
  } else if (series.part() == SeriesPart::value) {
    std::string quantile;
    append_double(field::kQuantile, bound_of(series.labels(), "quantile"), quantile);
    append_double(field::kQuantileValue, value, quantile);
    append_bytes(field::kBucket, quantile, parts_);
  } else if (series.part() == SeriesPart::sum) {
    append_double(field::kSampleSum, value, parts_);
  } else {
    append_number(field::kSampleCount, static_cast<std::uint64_t>(value), parts_);
    const bool is_summary = family_.type == MetricType::summary;
    end_metric(label_fields(series.labels()), is_summary ? field::kMetricSummary : field::kMetricHistogram,
               parts_);
    parts_.clear();
  }
}

void FamilyMessage::end_metric(std::string_view labels, unsigned kind, std::string_view value) {
  std::string fields(labels);
  append_bytes(kind, value, fields);
  append_bytes(field::kFamilyMetric, fields, metrics_);
}

void FamilyMessage::append_to(std::string& out, std::string_view family_fields) const {
  if (metrics_.empty()) return;
  append_varint(family_fields.size() + metrics_.size(), out);
  out.append(family_fields).append(metrics_);
}

}  // namespace gpumeter::protobuf
