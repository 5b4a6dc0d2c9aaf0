#include "exporter/text/view.hpp"

#include <cmath>
#include <iterator>
#include <protozero/pbf_writer.hpp>
#include <protozero/varint.hpp>
#include <utility>

#include "collectors/api/buckets.hpp"
#include "exporter/text/shown.hpp"

namespace gpumeter {
namespace {

/// Field numbers of metrics.proto.
namespace field {
constexpr unsigned kFamilyName = 1, kFamilyHelp = 2, kFamilyType = 3, kFamilyMetric = 4;
constexpr unsigned kMetricLabel = 1, kMetricGauge = 2, kMetricCounter = 3, kMetricSummary = 4,
                   kMetricUntyped = 5, kMetricHistogram = 7;
constexpr unsigned kLabelName = 1, kLabelValue = 2;
constexpr unsigned kValue = 1, kCounterCreated = 3;
constexpr unsigned kSampleCount = 1, kSampleSum = 2,
                   kBucket = 3;  ///< of histograms; kBucket: also the quantiles of summaries
constexpr unsigned kBucketExemplar = 3, kExemplars = 16;  ///< of classic and of native histograms
constexpr unsigned kExemplarLabel = 1, kExemplarValue = 2, kExemplarTime = 3;
constexpr unsigned kSchema = 5, kZeroThreshold = 6, kZeroCount = 7, kPositiveSpan = 12, kPositiveDelta = 13,
                   kSpanOffset = 1, kSpanLength = 2;  ///< of native histograms
constexpr unsigned kHistogramCreated = 15, kSummaryCreated = 4;
constexpr unsigned kCumulativeCount = 1, kUpperBound = 2;
constexpr unsigned kQuantile = 1, kQuantileValue = 2;
constexpr unsigned kSeconds = 1, kNanos = 2;  ///< of google.protobuf.Timestamp
}  // namespace field

using Message = protozero::pbf_writer;

/// The fields of a MetricFamily before its metrics.
std::string family_fields(const MetricDescriptor& family) {
  constexpr std::uint64_t kTypes[] = {1, 0, 4, 2, 3};  // GAUGE, COUNTER, HISTOGRAM, SUMMARY, UNTYPED
  std::string fields;
  Message message(fields);
  message.add_bytes(field::kFamilyName, family.name.data(), family.name.size());
  message.add_bytes(field::kFamilyHelp, valid_utf8(family.help));
  message.add_uint64(field::kFamilyType, kTypes[static_cast<std::size_t>(family.type)]);
  return fields;
}

/// A label of a Metric or of an Exemplar, in this field of it.
void append_label(unsigned number, std::string_view name, std::string_view value, std::string& to) {
  std::string pair;
  Message message(pair);
  message.add_bytes(field::kLabelName, name.data(), name.size());
  message.add_bytes(field::kLabelValue, valid_utf8(value));
  Message(to).add_bytes(number, pair);
}

/// The label fields of a Metric.
void append_label_fields(const Labels& labels, std::string& to) {
  for (const auto& [name, value] : labels.pairs()) append_label(field::kMetricLabel, name, value, to);
}

std::string timestamp(double unix_seconds) {
  constexpr double kNanosPerSecond = 1e9;
  const double whole = std::floor(unix_seconds);
  std::string message;
  Message(message).add_uint64(field::kSeconds, static_cast<std::uint64_t>(whole));
  Message(message).add_uint64(field::kNanos,
                              static_cast<std::uint64_t>((unix_seconds - whole) * kNanosPerSecond));
  return message;
}

std::string exemplar_fields(const Exemplar& exemplar) {
  std::string fields;
  append_label(field::kExemplarLabel, "trace_id", exemplar.trace_id, fields);
  if (!exemplar.span_id.empty()) append_label(field::kExemplarLabel, "span_id", exemplar.span_id, fields);
  Message(fields).add_double(field::kExemplarValue, exemplar.value);
  Message(fields).add_bytes(field::kExemplarTime, timestamp(exemplar.time));
  return fields;
}

/// The fields that make a histogram a native one too. A scraper takes those that it wants; without any
/// observation, Prometheus knows a native one by its threshold.
void append_native(const ExponentialBuckets& buckets, std::string& to) {
  Message histogram(to);
  histogram.add_sint32(field::kSchema, kSchema);
  histogram.add_double(field::kZeroThreshold, buckets.zero_threshold);
  histogram.add_uint64(field::kZeroCount, buckets.zero_count);
  std::vector<std::int64_t> deltas;
  std::int64_t last = 0;
  for (std::size_t i = 0, end = 0; i < buckets.counts.size();) {  // end: of the last span
    const std::size_t begin = i;
    for (; i < buckets.counts.size() && buckets.counts[i] != 0; ++i) {
      const auto count = static_cast<std::int64_t>(buckets.counts[i]);
      deltas.push_back(count - std::exchange(last, count));
    }
    if (i == begin) {
      ++i;
      continue;
    }
    // The offset of the first span is its bucket's index, that of another the number of buckets in between.
    const auto gap = static_cast<std::int32_t>(begin - end) + (end == 0 ? buckets.first : 0);
    Message span(histogram, field::kPositiveSpan);
    span.add_sint32(field::kSpanOffset, gap);
    span.add_uint32(field::kSpanLength, static_cast<std::uint32_t>(i - begin));
    end = i;
  }
  histogram.add_packed_sint64(field::kPositiveDelta, deltas.begin(), deltas.end());
}

/// Chooses the exemplars of classic buckets: the last of the bucket and of the fine ones in it.
class ClassicExemplars {
 public:
  /// Each bucket in turn. Returns that of a classic one, or null.
  const Exemplar* next(const Series& bucket) noexcept {
    const Exemplar* const own = bucket.exemplar();
    if (own != nullptr && (last_ == nullptr || own->time > last_->time)) last_ = own;
    return bucket.part() == SeriesPart::fine_bucket ? nullptr : std::exchange(last_, nullptr);
  }

 private:
  const Exemplar* last_ = nullptr;
};

/// The metrics of one family in protobuf, made from its series in their order.
class FamilyMessage {
 public:
  explicit FamilyMessage(const MetricDescriptor& family) : family_(family) {}

  /// `labels`: the label fields of the series, which a histogram's series does not need.
  void add(const Series& series, std::string_view labels, const Shown& shown) {
    const bool has_parts = family_.type == MetricType::histogram || family_.type == MetricType::summary;
    has_parts ? add_part(series, shown) : add_value(labels, shown);
  }

  /// Appends the message and its length, unless it has no metric.
  void append_to(std::string& out, std::string_view family_fields) const {
    if (metrics_.empty()) return;
    protozero::write_varint(std::back_inserter(out), family_fields.size() + metrics_.size());
    out.append(family_fields).append(metrics_);
  }

 private:
  void add_value(std::string_view labels, const Shown& shown) {
    std::string value;
    Message(value).add_double(field::kValue, shown.value);
    const bool is_counter = family_.type == MetricType::counter;
    if (is_counter && shown.since > 0)
      Message(value).add_bytes(field::kCounterCreated, timestamp(shown.since));
    const bool is_untyped = family_.type == MetricType::untyped;
    end_metric(labels,
               is_counter   ? field::kMetricCounter
               : is_untyped ? field::kMetricUntyped
                            : field::kMetricGauge,
               value);
  }

  // A source adds the buckets of a histogram, or the quantiles of a summary, first, then its sum, then its
  // count.
  void add_part(const Series& series, const Shown& shown) {
    const bool is_summary = family_.type == MetricType::summary;
    switch (series.part()) {
      case SeriesPart::bucket:
      case SeriesPart::fine_bucket:
        return add_bucket(series, shown.value);
      case SeriesPart::value:
        return add_quantile(series, shown.value);
      case SeriesPart::sum:
        return Message(parts_).add_double(field::kSampleSum, shown.value);
      case SeriesPart::count:
        end_parts(series, shown, is_summary);
    }
  }

  void add_bucket(const Series& series, double value) {
    buckets_.add(bound_of(series.labels(), "le"), value, series.part(), series.exemplar());
    const Exemplar* const exemplar = classic_.next(series);
    if (series.part() == SeriesPart::fine_bucket) return;
    Message parts(parts_);
    Message bucket(parts, field::kBucket);
    bucket.add_uint64(field::kCumulativeCount, whole(value));
    bucket.add_double(field::kUpperBound, buckets_.bounds.back());
    if (exemplar != nullptr) bucket.add_bytes(field::kBucketExemplar, exemplar_fields(*exemplar));
  }

  void add_quantile(const Series& series, double value) {
    Message parts(parts_);
    Message quantile(parts, field::kBucket);
    quantile.add_double(field::kQuantile, bound_of(series.labels(), "quantile"));
    quantile.add_double(field::kQuantileValue, value);
  }

  void end_parts(const Series& series, const Shown& shown, bool is_summary) {
    Message(parts_).add_uint64(field::kSampleCount, whole(shown.value));
    if (const auto native = exponential(buckets_, shown.value)) {
      append_native(*native, parts_);
      for (const Exemplar* const exemplar : buckets_.exemplars)
        Message(parts_).add_bytes(field::kExemplars, exemplar_fields(*exemplar));
    }
    if (shown.since > 0)
      Message(parts_).add_bytes(is_summary ? field::kSummaryCreated : field::kHistogramCreated,
                                timestamp(shown.since));
    std::string labels;
    append_label_fields(series.labels(), labels);
    end_metric(labels, is_summary ? field::kMetricSummary : field::kMetricHistogram, parts_);
    parts_.clear();
    buckets_ = {};
  }

  void end_metric(std::string_view labels, unsigned kind, std::string_view value) {
    std::string fields(labels);
    Message(fields).add_bytes(kind, value.data(), value.size());
    Message(metrics_).add_bytes(field::kFamilyMetric, fields);
  }

  const MetricDescriptor& family_;
  std::string metrics_;
  /// Of a histogram or summary: the buckets or quantiles, and the sum, before their count.
  std::string parts_;
  Buckets buckets_;  ///< of a histogram
  ClassicExemplars classic_;
};

void append_value(std::string_view prefix, double value, std::string& out) {
  char number[kValueTextMax];
  out.append(prefix).append(number, write_value(number, value));
}

void append_line(std::string_view prefix, double value, const Exemplar* exemplar, std::string& out) {
  append_value(prefix, value, out);
  if (exemplar != nullptr) {
    out.append(" # {trace_id=\"").append(exemplar->trace_id);
    if (!exemplar->span_id.empty()) out.append("\",span_id=\"").append(exemplar->span_id);
    append_value("\"} ", exemplar->value, out);
    append_value(" ", exemplar->time, out);
  }
  out += '\n';
}

void append_created(const Family& family, const Series& series, double since, std::string& out) {
  append_created_prefix(family.descriptor(), series.labels(), out);
  append_line({}, since, nullptr, out);
}

/// Selects series by their collector. Compares names once for consecutive series of the same source.
class CollectorChoice {
 public:
  explicit CollectorChoice(const Filter& filter) : filter_(filter), all_(filter.empty()) {}

  bool wants(const Series& series) noexcept {
    if (all_) return true;
    const std::string_view collector = series.collector();
    if (collector.data() != last_.data()) {
      last_ = collector;
      is_wanted_ = filter_.wants(collector);
    }
    return is_wanted_;
  }

 private:
  const Filter& filter_;
  const bool all_;
  std::string_view last_;
  bool is_wanted_ = filter_.wants({});
};

/// One page that is being rendered.
struct Request {
  Format format;
  CollectorChoice collectors;
  PageTime now;
};

/// The bytes before the number of each series of a list, by position.
class Prefixes {
 public:
  bool empty() const noexcept { return ends_.empty(); }
  /// Calls make(labels, part, bytes), which appends those of one series.
  template <class Make>
  void renew(const Family& family, const FamilySeries& series, Make&& make) {
    std::string made;
    family.for_each_listed([&](const Labels& labels, SeriesPart part) {
      if (series.may_show(ends_.size())) make(labels, part, made);
      ends_.push_back(static_cast<std::uint32_t>(made.size()));
    });
    ends_.shrink_to_fit();
    bytes_ = std::string(made);  // copied, to drop the excess capacity
  }
  std::string_view operator[](std::size_t position) const noexcept {
    const std::size_t begin = position == 0 ? 0 : ends_[position - 1];
    return {bytes_.data() + begin, ends_[position] - begin};
  }

 private:
  std::string bytes_;                ///< of all series, concatenated
  std::vector<std::uint32_t> ends_;  ///< end of each one
};

}  // namespace

/// A family's selected series, and the bytes that stay the same from page to page.
struct TextView::FamilyText {
  FamilySeries series = {};
  std::array<std::string, kFormatCount> headers = {};
  Prefixes lines = {};
  Prefixes messages = {};  ///< the labels of each series in protobuf; empty until a page needs them

  /// The list of series changed, or this is another family in the place of one that was removed.
  void forget() {
    headers = {};
    lines = messages = {};
  }

  /// Appends the family's series on the page, below its header.
  void append_lines(const Family& family, Request& request, std::string& out) {
    if (lines.empty()) {
      lines.renew(family, series, [&family](const Labels& labels, SeriesPart part, std::string& to) {
        if (part != SeriesPart::fine_bucket) append_line_prefix(family.descriptor(), part, labels, to);
      });
    }
    bool is_mentioned = false;
    ClassicExemplars exemplars;
    series.for_each(family, request.now, [&](const Series& line, const Shown& shown) {
      if (!request.collectors.wants(line)) return;
      const Exemplar* const exemplar = exemplars.next(line);
      if (line.part() == SeriesPart::fine_bucket) return;
      if (!std::exchange(is_mentioned, true)) out += header(family.descriptor(), request.format);
      append_line(lines[line.position()], shown.value,
                  request.format == Format::openmetrics ? exemplar : nullptr, out);
      // A Prometheus that does not take starts stores a series for each: text has those of counters that come
      // and go.
      const bool is_lasting = line.is_lasting() && shown.since == line.since();
      const bool has_start = shown.since > 0 && request.format == Format::openmetrics && !is_lasting;
      if (has_start) append_created(family, line, shown.since, out);
    });
  }

  void append_message(const Family& family, Request& request, std::string& out) {
    if (messages.empty()) {
      messages.renew(family, series, [](const Labels& labels, SeriesPart part, std::string& to) {
        if (part == SeriesPart::value) append_label_fields(labels, to);
      });
    }
    FamilyMessage message(family.descriptor());
    series.for_each(family, request.now, [&](const Series& each, const Shown& shown) {
      if (request.collectors.wants(each)) message.add(each, messages[each.position()], shown);
    });
    message.append_to(out, header(family.descriptor(), request.format));
  }

  const std::string& header(const MetricDescriptor& family, Format format) {
    std::string& header = headers[static_cast<std::size_t>(format)];
    if (!header.empty()) return header;
    header = format == Format::protobuf ? family_fields(family) : family_header(family, format);
    return header;
  }
};

TextView::TextView(const Store& store) : TextView(store, system_) {}
TextView::TextView(const Store& store, const Clock& clock) : store_(store), clock_(clock) {}
TextView::~TextView() = default;

void TextView::select(PageSelection selection) {
  const MutexLock lock(mutex_);
  selection_ = std::move(selection);
  ++selected_;
}

Rendered TextView::render(Format format, const Filter& filter) {
  constexpr std::size_t kSlack = 4096;  // for numbers that gain a digit
  Rendered page;
  const MutexLock lock(mutex_);
  Request request{format, CollectorChoice(filter), {clock_.monotonic(), clock_.realtime()}};
  std::size_t& last_size = last_size_[static_cast<std::size_t>(format)];
  if (filter.empty()) page.text.reserve(last_size + kSlack);
  page.generation = store_.walk([&](const Family& family) GPUMETER_REQUIRES(mutex_) {
    if (family.id() >= families_.size()) families_.resize(family.id() + 1);
    FamilyText& text = families_[family.id()];
    if (text.series.refresh(family, selection_, selected_)) text.forget();
    format == Format::protobuf ? text.append_message(family, request, page.text)
                               : text.append_lines(family, request, page.text);
  });
  if (format == Format::openmetrics) page.text += kOpenMetricsEnd;
  if (filter.empty()) last_size = page.text.size();
  return page;
}

}  // namespace gpumeter
