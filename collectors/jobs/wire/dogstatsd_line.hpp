#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

#include "collectors/jobs/wire/refusal.hpp"

/// Parses one line of the DogStatsD protocol into views of the given text. Accepts any bytes. No allocation,
/// no exceptions, no state; any thread.
namespace gpumeter::jobs {

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
  std::string_view ignored;               ///< the first field that is none of the above, and all after it
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

}  // namespace gpumeter::jobs
