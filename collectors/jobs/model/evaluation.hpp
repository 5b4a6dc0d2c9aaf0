#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "collectors/jobs/model/run_series.hpp"
#include "collectors/jobs/model/saved.hpp"
#include "collectors/jobs/wire/sender.hpp"

namespace gpumeter::jobs {

/// One evaluated metric of a run: its last and best value, its target, and the time at which it first met the
/// target.
class Evaluation {
 public:
  Evaluation(std::string metric, const RunSeries& run);

  const std::string& metric() const noexcept { return metric_; }
  /// Overrides the direction that lower_is_usual() derives from the name.
  void set_direction(bool lower_is_better) noexcept;
  void set_target(double target) noexcept;
  void evaluated(double value, const Moment& now) noexcept;
  /// The run started again under the same name.
  void forget() noexcept { seen_ = {}; }
  /// `is_late`: the run's first message arrived long after its start. If the first evaluation then meets the
  /// target, an earlier one may have met it too. The time to solution is unknown in that case and omitted.
  void show(const Moment& start, bool is_late) const noexcept;
  /// The line that restore() reads, whose first field is the metric, for the constructor.
  void save(RecordWriter& out) const;
  void restore(SavedReader& in);

 private:
  struct Seen {
    std::optional<double> first, value, best, target;
    Moment best_time;              ///< of the first evaluation that gave `best`
    std::optional<Moment> solved;  ///< of the first evaluation that met `target`
  };

  bool reaches(double value, double goal) const noexcept {
    return lower_is_better_ ? value <= goal : value >= goal;
  }
  void judge() noexcept;
  std::optional<double> time_to_solution(const Moment& start, bool is_late) const noexcept;

  std::string metric_;
  bool lower_is_better_;
  Seen seen_;
  std::array<OwnedSlot, 4> slots_;  ///< value, best, target, time to solution
};

/// The number of series of each evaluation.
inline constexpr std::size_t kSeriesOfEvaluation = 4;

/// Returns whether lower values of the metric are better, unless the job reports otherwise. They are if the
/// last word of the name is loss, perplexity, error, wer, cer, rmse, mse or mae, or if the last two are
/// error_rate. Any thread.
bool lower_is_usual(std::string_view metric);

}  // namespace gpumeter::jobs
