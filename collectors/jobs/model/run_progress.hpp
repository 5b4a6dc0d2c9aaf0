#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "collectors/jobs/wire/sender.hpp"

namespace gpumeter::jobs {

/// How a process of a run ended; the worst last.
enum class End : std::uint8_t { success, lost, aborted };

/// A process of a run.
struct Member {
  SenderId id;
  bool stopped = false;                      ///< sent run_stop, and no run_start since
  End end = End::success;                    ///< of its last run_stop
  bool announced = false;                    ///< sent run_start
  std::optional<std::int64_t> announced_at;  ///< the time in its last run_start, Unix seconds
  bool inherits = false;                     ///< that time is from before the process began: a fork's
  /// The process that it works for, as a data loader's worker does: a member whose descendant it is, or whose
  /// run_start it repeats. Such a member has no part in the end of the run. nullopt: none.
  std::optional<SenderId> leader;
  bool orphaned = false;        ///< its leader is gone without a run_stop; it has none since
  std::optional<double> step;   ///< its last ml.step
  std::optional<double> start;  ///< lowest ml.step it reported, less the steps it had counted by then
  double counted_steps = 0;     ///< its ml.steps of split train
  std::uint32_t restarts = 0;   ///< its `restart` events
  std::size_t series = 0;       ///< made on its account
};

/// The processes of a run and their step. A generation is a set of processes each of which came before the
/// last of the others was gone: ranks that start and end at different times, or join late, are one
/// generation. The next generation is a restart, and the steps that it repeats are lost.
class RunProgress {
 public:
  Member* find(const SenderId& id) noexcept;
  /// Adds the process. Members that are gone should be removed first. `completed`: the run has ended, so that
  /// a new generation is no restart.
  Member& join(const SenderId& id, bool completed);
  /// Takes out the members of which `is_gone` is true. With `up_to_alive` it stops at the first that is
  /// there, so that one question is enough for a run of which some process lives.
  std::vector<Member> remove(const std::function<bool(const Member&)>& is_gone, bool up_to_alive = false);
  const std::vector<Member>& members() const noexcept { return members_; }
  std::vector<Member>& members() noexcept { return members_; }
  /// Some member without a leader has not sent run_stop; `besides` does not count.
  bool is_live(const Member* besides = nullptr) const noexcept;

  /// The processes that have not sent run_stop and whose leader has not either.
  std::vector<SenderId> working() const;

  /// The run ended well and begins again: its steps start from nothing.
  void begin_anew() noexcept;
  /// A metric of any kind arrived. Only a generation that worked can be restarted; a launcher that announces
  /// the run and ends is none.
  void worked() noexcept { worked_ = true; }
  void at_step(Member& member, double step) noexcept;
  /// The first step of a new generation is not known yet.
  bool is_unsettled() const noexcept { return resumes_.has_value(); }
  /// Call after the last line of each datagram, see Message::finish().
  void settle(Member& member) noexcept;
  /// A `restart` event. Every rank sends one, so the member with the most counts, and the first event of a
  /// new generation is the restart that is counted already.
  void announced_restart(Member& member) noexcept;

  std::optional<double> step() const noexcept { return step_; }
  double restarts() const noexcept { return restarts_; }
  double lost_steps() const noexcept { return lost_steps_; }

 private:
  void begin_generation(bool completed) noexcept;
  void update_step() noexcept;

  std::vector<Member> members_;
  bool worked_ = false;
  std::optional<double> step_;     ///< highest of the members; stays when they are gone
  std::optional<double> highest_;  ///< of this generation
  std::optional<double> resumes_;  ///< highest of the last generation, until this one's start is known
  std::uint32_t announced_ = 0;    ///< most `restart` events of one member that are counted
  double restarts_ = 0;
  double lost_steps_ = 0;
};

}  // namespace gpumeter::jobs
