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

/// Data types: the label `dtype`, with the same values as that of gpu_peak_flops.
inline constexpr std::string_view kDtypes[] = {"fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8", "fp4"};

/// A label with a closed set of values, so that no job can create an unlimited number of series.
struct ClosedLabel {
  std::string_view name;  ///< of the client's tag and of the exported label
  std::span<const std::string_view> values;
  std::string_view fallback;  ///< value if the tag is missing; empty: the label is omitted
  std::string_view unknown;   ///< value for any other tag value; empty: the line is rejected
};

/// The number of values of `state`, the label of a Shape::memory.
inline constexpr std::size_t kMemoryStates = 3;

/// Index into ClosedLabel::values; kNoLabel: the series does not have the label.
using LabelChoice = std::array<std::uint8_t, 2>;
inline constexpr std::uint8_t kNoLabel = 0xFF;

enum class Shape : std::uint8_t {
  counter,    ///< increments of 0 or more
  gauge,      ///< the last value
  size,       ///< the last value, 0 or more
  step,       ///< a gauge of each process
  memory,     ///< a gauge of each process; the run has the sum of those that live
  phase,      ///< durations into a counter of seconds and one of times
  histogram,  ///< durations into buckets
  target,     ///< of an evaluation, with `metric` and `direction`
  eval,       ///< result of an evaluation, with `metric` and `direction`
  custom,     ///< the last value of the job's own `metric`
};

struct Word {
  std::string_view name;  ///< as the client sends it
  Shape shape;
  const MetricDescriptor* family;
  std::array<const ClosedLabel*, 2> labels{};
  const MetricDescriptor* times = nullptr;  ///< counts the durations of a phase
  const Bounds* bounds = nullptr;           ///< of a histogram
};

/// Returns nullptr if the vocabulary does not contain the name.
const Word* find_word(std::string_view name) noexcept;

/// Returns whether the word accepts this type: counters `c`, gauges `g`, durations `d`, `h` or `ms`.
bool takes(const Word& word, LineType type) noexcept;
/// Returns whether the word accepts this value, which must be is_acceptable().
bool takes(const Word& word, double value) noexcept;
/// The number of series for each choice of labels.
std::size_t series_of(const Word& word) noexcept;

/// Chooses the labels of a line by its tags. Ignores tags that the word does not have. These include all that
/// only the daemon may report (pid, uid, gpu, uuid, container ..).
std::variant<LabelChoice, Refusal> choose(const Word& word, const Tags& tags) noexcept;
std::vector<Label> labels_of(const Word& word, LabelChoice choice);

/// Counters and durations can be summed under `_other`; last values cannot.
bool can_be_summed(const Word& word) noexcept;

/// Reads the tag `direction`: true for min; the inner value is nullopt if the tag is missing.
std::variant<std::optional<bool>, Refusal> lower_is_better(const Tags& tags) noexcept;

/// All rows.
std::span<const Word> vocabulary() noexcept;

}  // namespace gpumeter::jobs
