#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/clock.hpp"
#include "collectors/jobs/wire/refusal.hpp"

/// One line of an MLPerf log (mlcommons/logging, mllog.py): text of any kind, `:::MLLOG` and a JSON object.
namespace gpumeter::jobs {

struct MllogLine {
  enum class Kind : std::uint8_t {
    run_start,
    run_stop,    ///< `success`
    evaluation,  ///< `metric`, `value`
    target,      ///< `metric`, `value`
    batch_size,  ///< `value`
    benchmark,   ///< `text`: which of MLPerf's it is
    progress,    ///< any other key of the run's course: epochs, blocks, evaluations, initialisation
    other,       ///< hyperparameters and the like: says that the run lives
  };
  Kind kind = Kind::other;
  Nanoseconds unix_time{};
  double value = 0;
  bool success = false;
  std::string text;
  std::string metric;
  std::optional<double> samples;  ///< gone through in training so far (metadata.samples_count)
};

/// nullopt: no MLLOG line, as most of what a job prints. malformed: the object is none, or lacks its key or
/// time; bad_value: what must be a number is none, or none within kMaxValue; bad_label: a run_stop that is
/// neither success nor aborted. Allocates, in the order of the line's size. Any bytes, any thread.
std::optional<std::variant<MllogLine, Refusal>> parse_mllog(std::string_view line);

/// Whether this benchmark's eval_accuracy is the better the lower, as the compliance checker of
/// mlcommons/logging holds it to its target.
bool mllog_lower_is_better(std::string_view benchmark) noexcept;

}  // namespace gpumeter::jobs
