#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "collectors/api/series.hpp"
#include "collectors/jobs/model/buckets.hpp"
#include "collectors/jobs/wire/dogstatsd_line.hpp"

/// The metrics that jobs may send, one row for each name. Constant tables, any thread.
namespace gpumeter::jobs {

/// A label whose values are a closed set, so that no job can make series without end.
struct ClosedLabel {
  std::string_view name;  ///< of the client's tag and of the exported label
  std::span<const std::string_view> values;
  std::string_view fallback;  ///< if the tag is missing; empty: no label then
  std::string_view unknown;   ///< for any other value; empty: the line is refused
};

/// Place in ClosedLabel::values; kNoLabel: the series does not have the label.
using LabelChoice = std::array<std::uint8_t, 2>;
inline constexpr std::uint8_t kNoLabel = 0xFF;

enum class Shape : std::uint8_t {
  counter,    ///< increments of 0 or more
  gauge,      ///< the last value
  size,       ///< the last value, 0 or more
  step,       ///< a gauge of each process of its own
  phase,      ///< durations into a counter of seconds and one of times
  histogram,  ///< durations into buckets
  target,     ///< of an evaluation, with `metric` and `direction`
  eval,       ///< result of an evaluation, with the same
  custom,     ///< the last value of the job's own `metric`
};

struct Word {
  std::string_view name;  ///< the client's
  Shape shape;
  const MetricDescriptor* family;
  std::array<const ClosedLabel*, 2> labels{};
  const MetricDescriptor* times = nullptr;  ///< a phase's number of times
  const Bounds* bounds = nullptr;           ///< a histogram's
};

/// nullptr: the vocabulary does not have it.
const Word* find_word(std::string_view name) noexcept;

/// Whether the word may have this type: counters `c`, gauges `g`, durations `d`, `h` or `ms`.
bool takes(const Word& word, LineType type) noexcept;
/// Whether the word may have this value, which must be is_acceptable().
bool takes(const Word& word, double value) noexcept;
/// Series for each choice of labels.
std::size_t series_of(const Word& word) noexcept;

/// The labels of a line by its tags. Ignores tags that the word does not have, among them all that only the
/// daemon may report (pid, uid, gpu, uuid, container ..).
std::variant<LabelChoice, Refusal> choose(const Word& word, const Tags& tags) noexcept;
std::vector<Label> labels_of(const Word& word, LabelChoice choice);

/// Counters and durations can be summed under `_other`, last values cannot.
bool can_be_summed(const Word& word) noexcept;

/// The tag `direction`: true for min; nullopt inside: no such tag.
std::variant<std::optional<bool>, Refusal> lower_is_better(const Tags& tags) noexcept;

/// All rows.
std::span<const Word> vocabulary() noexcept;

}  // namespace gpumeter::jobs
