#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "collectors/jobs/model/run_series.hpp"
#include "collectors/jobs/wire/sender.hpp"

namespace gpumeter::jobs {

/// One evaluated metric of a run: its last and best value, its target, and when that was first met.
class Evaluation {
 public:
  Evaluation(std::string metric, const RunSeries& run);

  const std::string& metric() const noexcept { return metric_; }
  /// Holds from now on; before, lower_is_usual() of the name does.
  void set_direction(bool lower_is_better) noexcept;
  void set_target(double target) noexcept;
  void evaluated(double value, const Moment& now) noexcept;
  /// The run began again under the same name.
  void forget() noexcept { seen_ = {}; }
  /// `is_late`: the run was first heard of long after its start. If its first evaluation meets the target, an
  /// earlier one may have met it before, so the time to solution is unknown and absent.
  void show(const Moment& start, bool is_late) const noexcept;

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

/// Series of each evaluation.
inline constexpr std::size_t kSeriesOfEvaluation = 4;

/// Whether lower values of a metric of this name are better, unless the job reports otherwise: its last word
/// is one of loss, perplexity, error, wer, cer, rmse, mse and mae, or its last two are error_rate. Any
/// thread.
bool lower_is_usual(std::string_view metric);

}  // namespace gpumeter::jobs
