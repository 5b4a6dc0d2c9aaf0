#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "base/clock.hpp"
#include "base/text.hpp"

/// What jobs send: why data is rejected, texts of labels, how a socket's data splits into lines, and one line
/// of DogStatsD.
namespace gpumeter::jobs {

/// The reason why a job's data was rejected: the label `reason` of gpumeter_jobs_dropped_total. Each rejected
/// line, or value of a packed line, counts once.
enum class Refusal : std::uint8_t {
  too_long,        ///< a datagram, frame or line over kMaxPayload
  too_many_lines,  ///< the lines of a datagram after kMaxLines
  malformed,       ///< neither a DogStatsD nor an MLLOG line
  bad_value,  ///< not a number, not finite, over kMaxValue, or negative for a metric that cannot be negative
  bad_timestamp,   ///< more than an hour from now
  unknown_metric,  ///< a metric or event outside the vocabulary
  wrong_type,      ///< a known metric with a type that it does not accept
  bad_label,       ///< a value outside the label's closed set
  rate_limit,      ///< the user sent more lines than its rate allows
  series_limit,    ///< no room for another series: counted under `_other`, or lost if it is a gauge
  user,            ///< a datagram or connection of a user that the configuration does not admit, or a
                   ///< benchmark's results of a user that may not send them
  identity,        ///< a datagram or connection under a uid that its process does not have
  connections,     ///< a connection beyond the limit of one user or of all users
  client,          ///< values that the client lost: rejected, or without room while the daemon did not read
  device,          ///< a benchmark's result of no GPU, or of a GPU that is not known
  stop,            ///< still queued when the daemon ended
};
inline constexpr std::size_t kRefusalCount = static_cast<std::size_t>(Refusal::stop) + 1;

/// The values of the label.
inline constexpr EnumNames<Refusal, kRefusalCount> kRefusalNames = {
    {{Refusal::too_long, "too_long"},
     {Refusal::too_many_lines, "too_many_lines"},
     {Refusal::malformed, "malformed"},
     {Refusal::bad_value, "bad_value"},
     {Refusal::bad_timestamp, "bad_timestamp"},
     {Refusal::unknown_metric, "unknown_metric"},
     {Refusal::wrong_type, "wrong_type"},
     {Refusal::bad_label, "bad_label"},
     {Refusal::rate_limit, "rate_limit"},
     {Refusal::series_limit, "series_limit"},
     {Refusal::user, "user"},
     {Refusal::identity, "identity"},
     {Refusal::connections, "connections"},
     {Refusal::client, "client"},
     {Refusal::device, "device"},
     {Refusal::stop, "stop"}}};
constexpr std::string_view to_string(Refusal refusal) noexcept { return kRefusalNames.of(refusal); }

inline constexpr std::size_t kMaxLabelBytes = 64;

/// Returns printable UTF-8, cut to kMaxLabelBytes between two characters. U+FFFD replaces each byte that is
/// not UTF-8 and each unprintable character (controls, line separators, direction marks). Any thread.
std::string label_text(std::string_view raw);

/// The same for the name of a run, but shortened() instead of cut, so that names that differ only at their
/// ends stay different. The Python client does the same. Any thread.
std::string run_name_text(std::string_view raw);

/// The longest datagram, frame or line. Datadog's agent reads 8 KiB.
inline constexpr std::size_t kMaxPayload = 65536;
/// The maximum number of lines in one payload; the rest is dropped. 8 KiB hold some 200 of the shortest
/// sensible lines.
inline constexpr std::size_t kMaxLines = 512;

/// The lines of one payload, without empty ones. No allocation, any thread.
class PayloadLines {
 public:
  constexpr explicit PayloadLines(std::string_view payload) noexcept : rest_(payload) {}
  std::optional<std::string_view> next() noexcept;

 private:
  std::string_view rest_;
};

/// Splits a stream into payloads: frames with a 32-bit little-endian length (Datadog), or plain lines
/// (pystatsd). The fourth byte identifies the framing, because it is 0 only in a length. Holds kMaxPayload
/// and four bytes. One per connection; not thread-safe.
///
///     read(fd, splitter.room()); splitter.received(n); while (auto payload = splitter.next()) ...
class StreamSplitter {
 public:
  enum class Framing : std::uint8_t { unknown, length, lines };

  /// `framing`: if it is known in advance, as for a file.
  explicit StreamSplitter(Framing framing = Framing::unknown);

  /// The buffer to read into. Never empty after next() has returned nullopt, unless broken().
  std::span<char> room() noexcept;
  void received(std::size_t bytes) noexcept { end_ += bytes; }
  /// Returns the next whole payload, valid until room() is called; nullopt if more bytes are needed. An
  /// incomplete payload at the end of a connection is dropped.
  std::optional<std::string_view> next() noexcept;
  /// The sender announced a frame over kMaxPayload, so the start of the next frame is unknown. The caller
  /// must close the connection.
  bool broken() const noexcept { return broken_; }
  /// The number of lines over kMaxPayload dropped so far.
  std::uint64_t overlong() const noexcept { return overlong_; }

 private:
  std::optional<std::string_view> next_frame() noexcept;
  std::optional<std::string_view> next_line() noexcept;
  std::string_view unread() const noexcept { return {buffer_.get() + begin_, end_ - begin_}; }

  std::unique_ptr<char[]> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t searched_ = 0;  ///< number of unread bytes known to contain no newline
  Framing framing_;
  bool skipping_ = false;  ///< inside a line over kMaxPayload
  bool broken_ = false;
  std::uint64_t overlong_ = 0;
};

// The parser of a line of DogStatsD returns views of the given text. It accepts any bytes, on any thread, and
// has no allocation, no exception and no state.

/// The longest tag list; Datadog's own client sends three to ten.
inline constexpr std::size_t kMaxTags = 32;
/// Above this a double cannot count in ones (2^53 is 9e15); up to this, sums stay finite.
inline constexpr double kMaxValue = 1e18;
/// One event in a million. No job samples more sparsely, and a line cannot represent more events.
inline constexpr double kMinRate = 1e-6;

struct Tag {
  std::string_view key;
  std::string_view value;  ///< empty for a bare tag
};

/// The part after `#`: "run:a,split:train".
class Tags {
 public:
  constexpr Tags() = default;
  constexpr explicit Tags(std::string_view text) noexcept : text_(text) {}

  /// Removes and returns the next tag, skipping empty ones; nullopt at the end.
  std::optional<Tag> next() noexcept;
  /// Returns the value of the first tag with this key, or empty if there is none. datadogpy appends its
  /// constant tags, so the call's own tags come first.
  std::string_view find(std::string_view key) const noexcept;
  /// The text contains more than kMaxTags tags.
  bool too_many() const noexcept;
  std::string_view text() const noexcept { return text_; }

 private:
  std::string_view text_;
};

/// The trace that a line's values belong to; see Exemplar. All empty if its tags name none.
struct Trace {
  std::string_view trace_id;
  std::string_view span_id;
};
/// Reads the tags `trace_id` and `span_id`. Ignores others' forms of them, such as Datadog's decimal ones.
Trace trace_of(const Tags& tags) noexcept;

/// The values of a line, `1:2:3`, one by one. Skips empty values, as Datadog's agent does (parse.go).
class PackedValues {
 public:
  constexpr PackedValues() = default;
  constexpr explicit PackedValues(std::string_view text) noexcept : text_(text) {}
  /// Returns nullopt at the end. The inner value is nullopt unless it is a finite number within kMaxValue.
  std::optional<std::optional<double>> next() noexcept;
  std::string_view text() const noexcept { return text_; }

 private:
  std::string_view text_;
};

enum class LineType : std::uint8_t { count, gauge, timer, histogram, distribution, set };

struct MetricLine {
  std::string_view name;
  PackedValues values;  ///< any text if the type is set
  LineType type = LineType::count;
  double rate = 1;  ///< the share of its events that the client sends: kMinRate to 1
  Tags tags;
  std::optional<std::int64_t> timestamp;  ///< Unix time in seconds
};

/// `_e{title bytes,text bytes}:title|text|...`
struct EventLine {
  std::string_view title;
  std::string_view text;
  Tags tags;
  std::optional<std::int64_t> timestamp;  ///< `d:`, Unix time in seconds; nullopt: missing or no integer
  unsigned milliseconds = 0;              ///< `ms:`, our clients' addition to `d:`; at most 999
};

/// A valid line that is not used: a service check, or a client's own metric (`datadog.dogstatsd.client.*`).
struct IgnoredLine {};

using Line = std::variant<MetricLine, EventLine, IgnoredLine, Refusal>;

/// `line`: without its end of line. Rejects a line as malformed, or as bad_value if its rate is invalid.
/// PackedValues parses the values themselves.
Line parse_line(std::string_view line) noexcept;

/// Returns how many lines this one stands for: the number of values of a packed line, otherwise 1. Empty
/// values count. Cheaper than parse_line().
std::size_t lines_in(std::string_view line) noexcept;

/// Parses a finite number within kMaxValue; a leading `+` is allowed. The same bounds apply to MLLOG values.
std::optional<double> parse_value(std::string_view text) noexcept;
/// The value is finite and within kMaxValue.
bool is_acceptable(double value) noexcept;

// One line of an MLPerf log (mlcommons/logging, mllog.py): text of any kind, `:::MLLOG` and a JSON object.

struct MllogLine {
  enum class Kind : std::uint8_t {
    run_start,
    run_stop,    ///< `success`
    evaluation,  ///< `metric`, `value`
    target,      ///< `metric`, `value`
    batch_size,  ///< `value`
    benchmark,   ///< `text`: the name of the MLPerf benchmark
    progress,    ///< any other key of the run's course: epochs, blocks, evaluations, initialisation
    other,       ///< hyperparameters and the like: only a sign of life
  };
  Kind kind = Kind::other;
  Nanoseconds unix_time{};
  double value = 0;
  bool success = false;
  std::string text;
  std::string metric;
  std::optional<double> samples;  ///< processed in training so far (metadata.samples_count)
};

/// Returns nullopt if the line is no MLLOG line, as most of a job's output is not.
///
/// Refusals:
/// - malformed: no JSON object, or one without key or time;
/// - bad_value: a number is missing, invalid or over kMaxValue;
/// - bad_label: a run_stop that is neither success nor aborted.
///
/// Accepts any bytes. Allocates in proportion to the line's size. Any thread.
std::optional<std::variant<MllogLine, Refusal>> parse_mllog(std::string_view line);

/// Returns whether a lower eval_accuracy of this benchmark is better. The compliance checker of
/// mlcommons/logging compares it with its target in the same direction.
bool mllog_lower_is_better(std::string_view benchmark) noexcept;

}  // namespace gpumeter::jobs
