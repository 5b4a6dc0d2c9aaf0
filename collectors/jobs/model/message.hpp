#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/jobs/model/user.hpp"
#include "collectors/jobs/wire/mllog_line.hpp"

namespace gpumeter::jobs {

/// How far a line's own time may differ from the machine's. The time is not shown; the check rejects lines of
/// another day.
inline constexpr Nanoseconds kTimestampTolerance = std::chrono::hours(1);

/// The effect of one message's lines on the runs of its user. Exists while the message is read.
class Message {
 public:
  Message(Shared& shared, User& user, const Origin& origin) noexcept
      : shared_(shared), user_(user), from_(origin) {}

  void take(const Line& line);
  /// `run`: the name that the configuration gives to the log.
  void take(std::string_view run, const MllogLine& line);
  /// Call after the last line: by then the ml.step and ml.steps of one step are both here, in either order.
  void finish() noexcept;

 private:
  /// One value of a line, for the word and labels that it counts under.
  struct Measure {
    const Word& word;
    LabelChoice choice;
    double value;
    double weight;
    std::string_view metric;
    std::optional<bool> lower_is_better;
  };

  void take_metric(const MetricLine& line);
  void take_client_loss(const MetricLine& line);
  void take_values(const MetricLine& line, Measure measure);
  void take_event(const EventLine& line);
  void apply(const Place& place, const Measure& measure);
  void take_step(const Place& place, double step);
  void take_evaluation(const Place& place, const Measure& measure);
  void take_custom(const Place& place, const Measure& measure);
  void take_samples(const Place& place, double so_far);
  void drop(Refusal refusal) noexcept { shared_.drop(refusal); }

  Shared& shared_;
  User& user_;
  const Origin from_;
  std::vector<Run*> unsettled_;  ///< runs that a step of this message may have restarted
};

}  // namespace gpumeter::jobs
