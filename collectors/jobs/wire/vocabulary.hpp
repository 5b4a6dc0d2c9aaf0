#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/text.hpp"
#include "collectors/api/catalog.hpp"
#include "collectors/api/series.hpp"
#include "collectors/jobs/wire/line.hpp"

namespace gpumeter::jobs {

/// Upper bounds of a histogram's buckets, in seconds, without the last one, +Inf. Constant tables, any
/// thread.
///
/// They are those of native histograms (collectors/api/buckets.hpp), so that one set of counts gives exact
/// native and classic buckets. `histogram_quantile` interpolates inside a bucket, so its error is bounded by
/// the ratio of the bucket's bounds, 1.0905. Training steps come close to this worst case: they all take the
/// same time and fall into one bucket. Any quantile up to the 99th percentile is then at most 9.1 % off,
/// whatever the distribution. Quantiles of smooth distributions are within about 1 %.
///
/// A classic histogram has a series for each bound, from its first observation on. Adaptive sets would be
/// smaller, but a bucket that appears later lacks its first increase in `rate()`. Quantiles would then be
/// wrong for a window, and machines with different sets could not be added up by `le`. Above the durations
/// that matter, classic histograms therefore have every sixth bound only.
struct Bounds {
  static constexpr std::size_t kCoarse = 6;

  std::span<const double> all = {};
  std::size_t fine = 0;  ///< the first ones, which classic histograms have too

  constexpr bool is_classic(std::size_t i) const noexcept {
    return i < fine || (i + 1 - fine) % kCoarse == 0;
  }
  constexpr std::size_t classic() const noexcept { return fine + (all.size() - fine) / kCoarse; }
};

/// The value of the label `le`, in OpenMetrics' form: "0.001096", "10.0".
std::string bound_text(double bound);

// The metrics that jobs may send, one row for each name. Constant tables, any thread.

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
  Bounds bounds = {};                       ///< of a histogram
};

/// Returns nullptr if the vocabulary does not contain the name.
const Word* find_word(std::string_view name) noexcept;

/// Returns whether the word accepts this type: counters `c`, gauges `g`, durations `d`, `h` or `ms`.
bool takes(const Word& word, LineType type) noexcept;
/// Returns whether the word accepts this value, which must be is_acceptable().
bool takes(const Word& word, double value) noexcept;
/// The number of series for each choice of labels, of a histogram those of a classic one.
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

/// What the daemon exports of each run in addition to the families of these words.
inline constexpr const MetricDescriptor* kRunFamilies[] = {&catalog::ml_run_start_timestamp,
                                                           &catalog::ml_run_stop_timestamp,
                                                           &catalog::ml_run_time,
                                                           &catalog::ml_last_update_timestamp,
                                                           &catalog::ml_run_restarts,
                                                           &catalog::ml_lost_steps,
                                                           &catalog::ml_step,
                                                           &catalog::ml_run_info,
                                                           &catalog::ml_eval_best_value,
                                                           &catalog::ml_time_to_solution,
                                                           &catalog::ml_energy,
                                                           &catalog::ml_gpu_idle_allocated_seconds,
                                                           &catalog::ml_run_gpu_info,
                                                           &catalog::ml_throttled_seconds,
                                                           &catalog::ml_clock_lost_seconds};

// What a run_start may report about its run. Constant tables, any thread.

/// A tag of run_start and a label of ml_run_info.
enum class Fact : std::uint8_t {
  framework,  ///< any text, as the two below
  version,
  model,
  precision,          ///< of the matrix multiplications: a dtype, int4, or mixed
  sharding,           ///< how data-parallel processes split parameters: fsdp, hsdp, zero1, zero2, zero3
  data_parallel,      ///< replicas of the model; a number from 1 to 999999, as the two below
  tensor_parallel,    ///< processes that share each layer
  pipeline_parallel,  ///< stages into which the layers are split
};
inline constexpr std::size_t kFactCount = static_cast<std::size_t>(Fact::pipeline_parallel) + 1;

inline constexpr EnumNames<Fact, kFactCount> kFactNames = {{{Fact::framework, "framework"},
                                                            {Fact::version, "version"},
                                                            {Fact::model, "model"},
                                                            {Fact::precision, "precision"},
                                                            {Fact::sharding, "sharding"},
                                                            {Fact::data_parallel, "data_parallel"},
                                                            {Fact::tensor_parallel, "tensor_parallel"},
                                                            {Fact::pipeline_parallel, "pipeline_parallel"}}};
constexpr std::string_view to_string(Fact fact) noexcept { return kFactNames.of(fact); }

/// By Fact; empty: not reported.
using RunFacts = std::array<std::string, kFactCount>;

/// Returns whether the fact can have this value, which is not empty.
bool is_acceptable(Fact fact, std::string_view value) noexcept;

struct FactsRead {
  RunFacts facts;
  std::size_t refused = 0;  ///< tags whose value is outside the closed set
};
FactsRead read_facts(const Tags& tags);

/// Those that are reported.
std::vector<Label> labels_of(const RunFacts& facts);

}  // namespace gpumeter::jobs
