#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/clock.hpp"
#include "collectors/jobs/wire/line.hpp"

/// One line of an MLPerf log (mlcommons/logging, mllog.py): text of any kind, `:::MLLOG` and a JSON object.
namespace gpumeter::jobs {

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
