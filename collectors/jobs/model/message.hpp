#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/jobs/model/user.hpp"
#include "collectors/jobs/wire/mllog_line.hpp"

namespace gpumeter::jobs {

/// The largest accepted difference between a line's own time and the machine's. The time is not exported; the
/// check rejects lines of another day.
inline constexpr Nanoseconds kTimestampTolerance = std::chrono::hours(1);

/// Applies the lines of one message to the runs of its user. Lives as long as the message is read.
class Message {
 public:
  Message(Shared& shared, User& user, const Origin& origin) noexcept
      : shared_(shared), user_(user), from_(origin) {}

  void take(const Line& line);
  /// `run`: the name that the configuration gives to the log.
  void take(std::string_view run, const MllogLine& line);
  /// Call after the last line: by then both ml.step and ml.steps of a step have arrived, in either order.
  void finish() noexcept;

 private:
  /// One value of a line, with the word and the labels that it counts under.
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
  void take_memory(const Place& place, const Measure& measure);
  RunFacts facts_of(const Tags& tags);
  void take_samples(const Place& place, double so_far);
  void drop(Refusal refusal) noexcept { shared_.drop(refusal); }

  Shared& shared_;
  User& user_;
  const Origin from_;
  std::vector<Run*> unsettled_;  ///< runs that a step of this message may have restarted
};

}  // namespace gpumeter::jobs
