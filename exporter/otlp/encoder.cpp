#include "exporter/otlp/encoder.hpp"

#include <charconv>
#include <cmath>
#include <exception>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

#include "base/build_info.hpp"
#include "collectors/api/buckets.hpp"
#include "exporter/otlp/mapping.hpp"

namespace gpumeter::otlp {
namespace {

/// Field numbers of the protocol's messages.
namespace field {
constexpr unsigned kResourceMetrics = 1, kResource = 1, kScopeMetrics = 2, kScope = 1, kMetrics = 2,
                   kSchemaUrl = 3;  ///< from the request down to its metrics
constexpr unsigned kResourceAttribute = 1, kScopeName = 1, kScopeVersion = 2;
constexpr unsigned kName = 1, kDescription = 2, kUnit = 3, kGauge = 5, kSum = 7, kHistogram = 9,
                   kExponentialHistogram = 10, kSummary = 11;  ///< of a Metric
constexpr unsigned kPoint = 1, kTemporality = 2, kIsMonotonic = 3;
constexpr unsigned kStart = 2, kTime = 3, kDouble = 4, kInteger = 6,
                   kAttribute = 7;          ///< of a NumberDataPoint
constexpr unsigned kCount = 4, kTotal = 5;  ///< of a HistogramDataPoint and a SummaryDataPoint
constexpr unsigned kBucketCounts = 6, kBounds = 7, kHistogramAttribute = 9;
constexpr unsigned kExponentialAttribute = 1, kScale = 6, kZeroCount = 7, kPositive = 8, kZeroThreshold = 14,
                   kOffset = 1, kExponentialCounts = 2;  ///< of an ExponentialHistogramDataPoint
constexpr unsigned kHistogramExemplar = 8, kExponentialExemplar = 11, kExemplarTime = 2, kExemplarDouble = 3,
                   kSpanId = 4, kTraceId = 5;
constexpr unsigned kQuantiles = 6, kQuantile = 1, kQuantileValue = 2;
constexpr unsigned kKey = 1, kValue = 2, kText = 1;
constexpr unsigned kPartialSuccess = 1, kRejected = 1, kErrorMessage = 2, kStatusMessage = 2;
}  // namespace field

constexpr std::int32_t kCumulative = 2;
constexpr double kNanosPerSecond = 1e9;

using Message = protozero::pbf_writer;

void add_text(Message& to, unsigned number, std::string_view text) {
  to.add_bytes(number, text.data(), text.size());
}

void add_attribute(Message& to, unsigned number, std::string_view name, std::string_view text) {
  Message pair(to, number);
  add_text(pair, field::kKey, name);
  Message value(pair, field::kValue);
  add_text(value, field::kText, valid_utf8(text));
}

void add_times(Message& point, double since, Nanoseconds now) {
  if (since > 0) point.add_fixed64(field::kStart, static_cast<std::uint64_t>(since * kNanosPerSecond));
  point.add_fixed64(field::kTime, static_cast<std::uint64_t>(now.count()));
}

void add_exponential(Message& point, const ExponentialBuckets& buckets) {
  point.add_sint32(field::kScale, kSchema);
  point.add_fixed64(field::kZeroCount, buckets.zero_count);
  point.add_double(field::kZeroThreshold, buckets.zero_threshold);
  Message positive(point, field::kPositive);
  positive.add_sint32(field::kOffset, buckets.first - 1);  // counted by lower bounds
  positive.add_packed_uint64(field::kExponentialCounts, buckets.counts.begin(), buckets.counts.end());
}

void add_buckets(Message& point, const Buckets& parts, double count) {
  std::vector<double> bounds;
  std::vector<std::uint64_t> counts;
  double before = 0;
  for (std::size_t i = 0; i < parts.bounds.size() && std::isfinite(parts.bounds[i]); ++i) {
    bounds.push_back(parts.bounds[i]);
    counts.push_back(whole(parts.values[i] - before));
    before = parts.values[i];
  }
  counts.push_back(whole(count - before));
  point.add_packed_fixed<std::uint64_t>(field::kBucketCounts, counts.begin(), counts.end());
  point.add_packed_fixed<double>(field::kBounds, bounds.begin(), bounds.end());
}

/// The bytes that these hexadecimal digits stand for.
std::string bytes_of(std::string_view digits) {
  std::string bytes(digits.size() / 2, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    unsigned char byte = 0;
    std::from_chars(&digits[2 * i], &digits[2 * i] + 2, byte, 16);
    bytes[i] = static_cast<char>(byte);
  }
  return bytes;
}

void add_exemplars(Message& point, unsigned number, const Buckets& parts) {
  for (const Exemplar* const each : parts.exemplars) {
    Message exemplar(point, number);
    exemplar.add_fixed64(field::kExemplarTime, static_cast<std::uint64_t>(each->time * kNanosPerSecond));
    exemplar.add_double(field::kExemplarDouble, each->value);
    if (!each->span_id.empty()) exemplar.add_bytes(field::kSpanId, bytes_of(each->span_id));
    exemplar.add_bytes(field::kTraceId, bytes_of(each->trace_id));
  }
}

void add_quantiles(Message& point, const Buckets& parts) {
  for (std::size_t i = 0; i < parts.bounds.size(); ++i) {
    Message quantile(point, field::kQuantiles);
    quantile.add_double(field::kQuantile, parts.bounds[i]);
    quantile.add_double(field::kQuantileValue, parts.values[i]);
  }
}

std::string encoded(const Attributes& resource) {
  std::string bytes;
  Message message(bytes);
  for (const auto& [name, value] : resource) add_attribute(message, field::kResourceAttribute, name, value);
  return bytes;
}

}  // namespace

/// The requests of one export. Points are collected by metric: several families may be one metric.
class Encoder::Batch {
 public:
  Batch(const Encoder& encoder, const PageTime& now) : encoder_(encoder), now_(now.realtime) {}

  void add(const MetricDescriptor& family, const Series& series, const Shown& shown) {
    const bool is_summary = family.type == MetricType::summary;
    if (family.type == MetricType::histogram || is_summary) return add_part(family, series, shown);
    const Mapping* const mapping = encoder_.has_conventions_ ? mapping_of(family, series.labels()) : nullptr;
    std::string bytes;
    Message point(bytes);
    const bool is_gauge = (mapping != nullptr ? mapping->type : family.type) == MetricType::gauge;
    add_times(point, is_gauge ? 0 : shown.since, now_);
    constexpr double kBeyond = 9.2e18;  // of a 64-bit integer
    if (mapping != nullptr && mapping->is_integer && std::abs(shown.value) < kBeyond) {
      point.add_sfixed64(field::kInteger, std::llround(shown.value));
    } else {
      point.add_double(field::kDouble, shown.value);
    }
    add_labels(point, field::kAttribute, series.labels(), mapping);
    add_point(metric_of(family, mapping, false), bytes);
  }

  /// Before the series of each family: an incomplete histogram is not the next one's.
  void begin() { buckets_ = {}; }

  std::vector<Request> take() {
    end_request();
    return std::move(requests_);
  }

 private:
  using Key = std::pair<std::string, bool>;  ///< name; whether it is an exponential histogram
  /// Owns its texts: between two families of a walk, a page from outside may go with its families.
  struct Metric {
    std::string help;
    std::string_view unit;
    MetricType type;  ///< untyped: a sum that also falls
    std::string points = {};
  };

  // A source adds the buckets of a histogram, or the quantiles of a summary, first, then its sum, then its
  // count.
  void add_part(const MetricDescriptor& family, const Series& series, const Shown& shown) {
    const bool is_summary = family.type == MetricType::summary;
    if (series.part() == SeriesPart::sum) {
      sum_ = shown.value;
    } else if (series.part() != SeriesPart::count) {
      buckets_.add(bound_of(series.labels(), is_summary ? "quantile" : "le"), shown.value, series.part(),
                   series.exemplar());
    } else {
      end_parts(family, series.labels(), shown, is_summary);
      buckets_ = {};
    }
  }

  void end_parts(const MetricDescriptor& family, const Labels& labels, const Shown& shown, bool is_summary) {
    std::string bytes;
    Message point(bytes);
    add_times(point, shown.since, now_);
    point.add_fixed64(field::kCount, whole(shown.value));
    point.add_double(field::kTotal, sum_);
    const auto by_powers = is_summary ? std::nullopt : exponential(buckets_, shown.value);
    unsigned attribute = field::kHistogramAttribute;
    if (by_powers) {
      add_exponential(point, *by_powers);
      add_exemplars(point, field::kExponentialExemplar, buckets_);
      attribute = field::kExponentialAttribute;
    } else if (is_summary) {
      add_quantiles(point, buckets_);
      attribute = field::kAttribute;
    } else {
      add_buckets(point, buckets_, shown.value);
      add_exemplars(point, field::kHistogramExemplar, buckets_);
    }
    add_labels(point, attribute, labels, nullptr);
    add_point(metric_of(family, nullptr, by_powers.has_value()), bytes);
  }

  static void add_labels(Message& point, unsigned number, const Labels& labels, const Mapping* mapping) {
    for (const auto& [name, value] : labels.pairs())
      add_attribute(point, number, mapping != nullptr ? attribute_of(name) : name, value);
    if (mapping != nullptr && !mapping->added.name.empty())
      add_attribute(point, number, mapping->added.name, mapping->added.value);
  }

  // Without a type of its own (untyped), a family is a gauge.
  Metric& metric_of(const MetricDescriptor& family, const Mapping* mapping, bool is_exponential) {
    Key key(mapping != nullptr ? mapping->name : family.name, is_exponential);
    const auto found = metrics_.find(key);
    if (found != metrics_.end()) return found->second;
    const MetricType type = family.type == MetricType::untyped ? MetricType::gauge : family.type;
    Metric metric = mapping != nullptr ? Metric{"", mapping->unit, mapping->type}
                                       : Metric{std::string(family.help), unit_of(family), type};
    return metrics_.emplace(std::move(key), std::move(metric)).first->second;
  }

  void add_point(Metric& metric, const std::string& point) {
    Message(metric.points).add_message(field::kPoint, point);
    size_ += point.size();
    ++points_;
    if (size_ >= encoder_.largest_) end_request();
  }

  static void add_metric(Message& scope, const Key& key, const Metric& metric) {
    constexpr unsigned kKinds[] = {field::kGauge, field::kSum, field::kHistogram, field::kSummary,
                                   field::kSum};  // by MetricType
    Message message(scope, field::kMetrics);
    const auto& [name, is_exponential] = key;
    add_text(message, field::kName, name);
    if (!metric.help.empty()) add_text(message, field::kDescription, valid_utf8(metric.help));
    add_text(message, field::kUnit, metric.unit);
    std::string data = metric.points;
    Message fields(data);
    if (metric.type != MetricType::gauge && metric.type != MetricType::summary)
      fields.add_enum(field::kTemporality, kCumulative);
    if (metric.type == MetricType::counter) fields.add_bool(field::kIsMonotonic, true);
    message.add_message(
        is_exponential ? field::kExponentialHistogram : kKinds[static_cast<std::size_t>(metric.type)], data);
  }

  void end_request() {
    if (points_ == 0) return;
    Request& request = requests_.emplace_back();
    request.points = std::exchange(points_, 0);
    {
      Message message(request.body);
      Message resource(message, field::kResourceMetrics);
      resource.add_message(field::kResource, encoder_.resource_);
      {
        Message scope(resource, field::kScopeMetrics);
        {
          Message id(scope, field::kScope);
          add_text(id, field::kScopeName, "gpumeter");
          add_text(id, field::kScopeVersion, build::kVersion);
        }
        for (const auto& [key, metric] : metrics_) add_metric(scope, key, metric);
        if (encoder_.has_conventions_) add_text(scope, field::kSchemaUrl, kSchemaUrl);
      }
    }
    metrics_.clear();
    size_ = 0;
  }

  const Encoder& encoder_;
  const Nanoseconds now_;
  std::map<Key, Metric> metrics_;
  Buckets buckets_;         ///< of the histogram or summary before its count
  double sum_ = 0;          ///< its sum
  std::size_t size_ = 0;    ///< bytes of the points
  std::size_t points_ = 0;  ///< of the request that is not ended yet
  std::vector<Request> requests_;
};

Encoder::Encoder(const Store& store, PageSelection selection, const Attributes& resource,
                 bool has_conventions, std::size_t largest)
    : store_(store),
      selection_(std::move(selection)),
      resource_(encoded(resource)),
      has_conventions_(has_conventions),
      largest_(largest) {}

std::vector<Request> Encoder::encode(const PageTime& now) {
  Batch batch(*this, now);
  store_.walk_in_slices([&](const Family& family) {
    if (family.id() >= families_.size()) families_.resize(family.id() + 1);
    FamilySeries& series = families_[family.id()];
    series.refresh(family, selection_, 1);
    batch.begin();
    series.for_each(family, now, [&](const Series& each, const Shown& shown) {
      batch.add(family.descriptor(), each, shown);
    });
  });
  return batch.take();
}

namespace {

constexpr auto kBytes = protozero::pbf_wire_type::length_delimited;

void take_partial_success(protozero::pbf_reader message, Answer& answer) {
  using protozero::tag_and_type;
  while (message.next()) {
    if (message.tag_and_type() == tag_and_type(field::kRejected, protozero::pbf_wire_type::varint)) {
      answer.rejected = message.get_int64();
    } else if (message.tag_and_type() == tag_and_type(field::kErrorMessage, kBytes)) {
      answer.message = message.get_string();
    } else {
      message.skip();
    }
  }
}

}  // namespace

Result<Answer> decode_answer(std::string_view body, bool is_accepted) {
  Answer answer;
  try {
    protozero::pbf_reader message(body.data(), body.size());
    const unsigned number = is_accepted ? field::kPartialSuccess : field::kStatusMessage;
    while (message.next(number, kBytes)) {
      if (is_accepted) {
        take_partial_success(message.get_message(), answer);
      } else {
        answer.message = message.get_string();
      }
    }
    return answer;
  } catch (const std::exception&) {
    return Error("the receiver's answer is malformed");
  }
}

}  // namespace gpumeter::otlp
