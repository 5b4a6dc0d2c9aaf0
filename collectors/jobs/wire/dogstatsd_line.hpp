#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

#include "collectors/jobs/wire/refusal.hpp"

/// One line of the DogStatsD protocol, taken apart into views of the text that was given. Nothing here
/// allocates, throws or keeps state: any bytes, any thread.
namespace gpumeter::jobs {

/// The largest tag list that is looked at; Datadog's own client sends three to ten.
inline constexpr std::size_t kMaxTags = 32;
/// Beyond it a double counts no longer in ones (2^53 is 9e15), and sums of it stay finite.
inline constexpr double kMaxValue = 1e18;
/// One event in a million: no job samples thinner, and a line cannot stand for more.
inline constexpr double kMinRate = 1e-6;

struct Tag {
  std::string_view key;
  std::string_view value;  ///< empty for a bare tag
};

/// The part behind `#`: "run:a,split:train".
class Tags {
 public:
  constexpr Tags() = default;
  constexpr explicit Tags(std::string_view text) noexcept : text_(text) {}

  /// Takes the next tag off the front; nullopt at the end. Empty ones are passed over.
  std::optional<Tag> next() noexcept;
  /// The value of the first tag of this key (datadogpy appends its constant tags, so the call's own come
  /// first); empty where there is none.
  std::string_view find(std::string_view key) const noexcept;
  /// More than kMaxTags.
  bool too_many() const noexcept;
  std::string_view text() const noexcept { return text_; }

 private:
  std::string_view text_;
};

/// The values of a line, `1:2:3`, one by one. Empty ones are passed over, as by Datadog's agent (parse.go).
class PackedValues {
 public:
  constexpr PackedValues() = default;
  constexpr explicit PackedValues(std::string_view text) noexcept : text_(text) {}
  /// nullopt at the end; a value is nullopt where it is no finite number within kMaxValue.
  std::optional<std::optional<double>> next() noexcept;
  std::string_view text() const noexcept { return text_; }

 private:
  std::string_view text_;
};

enum class LineType : std::uint8_t { count, gauge, timer, histogram, distribution, set };

struct MetricLine {
  std::string_view name;
  PackedValues values;  ///< of a set: any text
  LineType type = LineType::count;
  double rate = 1;  ///< kMinRate to 1: what share of its events the client sends
  Tags tags;
  std::optional<std::int64_t> timestamp;  ///< Unix time in seconds
  std::string_view ignored;               ///< from the first field that is none of the above, to the end
};

/// `_e{title bytes,text bytes}:title|text|...`
struct EventLine {
  std::string_view title;
  std::string_view text;
  Tags tags;
  std::optional<std::int64_t> timestamp;  ///< `d:`, Unix time in seconds; nullopt: none, or no whole number
};

/// Good, and of no interest: service checks, and what a client tells of itself
/// (`datadog.dogstatsd.client.*`).
struct IgnoredLine {};

using Line = std::variant<MetricLine, EventLine, IgnoredLine, Refusal>;

/// `line` without its end of line. Refuses as malformed or bad_value, the latter for a rate as well; the
/// values themselves are read by PackedValues.
Line parse_line(std::string_view line) noexcept;

/// A finite number within kMaxValue, a leading `+` allowed. Also what MLLOG values are held to.
std::optional<double> parse_value(std::string_view text) noexcept;
/// Finite and within kMaxValue.
bool is_acceptable(double value) noexcept;

}  // namespace gpumeter::jobs
