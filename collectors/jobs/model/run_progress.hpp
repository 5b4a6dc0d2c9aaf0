#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/clock.hpp"
#include "collectors/jobs/model/saved.hpp"
#include "collectors/jobs/wire/sender.hpp"
#include "collectors/jobs/wire/vocabulary.hpp"

namespace gpumeter::jobs {

/// How a process of a run ended, from best to worst.
enum class End : std::uint8_t { success, lost, aborted };

/// A process of a run.
struct Member {
  SenderId id;
  bool stopped = false;                      ///< sent run_stop, and no run_start since
  End end = End::success;                    ///< of its last run_stop
  bool announced = false;                    ///< sent run_start
  std::optional<std::int64_t> announced_at;  ///< the time in its last run_start, Unix seconds
  bool inherits = false;  ///< `announced_at` is from before the process began: it is a fork
  /// The process that this one works for, as a data loader's worker does: a member that is its ancestor, or
  /// whose run_start it repeats. A member with a leader does not affect the end of the run. nullopt: none.
  std::optional<SenderId> leader;
  bool orphaned = false;        ///< its leader is gone without a run_stop, and no other has followed
  std::optional<double> step;   ///< its last ml.step
  std::optional<double> start;  ///< lowest reported ml.step, less the steps counted by then
  double counted_steps = 0;     ///< its ml.steps of split train
  std::uint32_t restarts = 0;   ///< its `restart` events
  std::size_t series = 0;       ///< charged to this process
  /// Its last ml.memory, by the place of the label's value. nullopt: it sent none.
  std::array<std::optional<double>, kMemoryStates> memory;
  Nanoseconds last_seen{};  ///< its last message for this run
};

/// The processes of a run and their step. A generation is a set of overlapping processes: each joined before
/// the last of the others was gone. Ranks that start and end at different times, or join late, are thus one
/// generation. The next generation is a restart, and the steps that it repeats are lost.
class RunProgress {
 public:
  Member* find(const SenderId& id) noexcept;
  /// Adds the process. Remove the members that are gone first. `completed`: the run has ended, so a new
  /// generation is no restart.
  Member& join(const SenderId& id, bool completed);
  /// Removes and returns the members for which `is_gone` is true. With `up_to_alive`, stops at the first
  /// member that is not gone, so that one check is enough for a run with a live process.
  std::vector<Member> remove(const std::function<bool(const Member&)>& is_gone, bool up_to_alive = false);
  const std::vector<Member>& members() const noexcept { return members_; }
  std::vector<Member>& members() noexcept { return members_; }
  /// Returns whether some member without a leader, except `besides`, has not sent run_stop.
  bool is_live(const Member* besides = nullptr) const noexcept;

  /// Returns the processes that have not sent run_stop and whose leader has not sent it either.
  std::vector<SenderId> working() const;

  /// The run ended with success and starts again: its steps start from 0.
  void begin_anew() noexcept;
  /// A metric of any kind arrived. Only a generation that worked can be restarted, which excludes a launcher
  /// that announces the run and ends.
  void worked() noexcept { worked_ = true; }
  void at_step(Member& member, double step) noexcept;
  /// The first step of a new generation is not known yet.
  bool is_unsettled() const noexcept { return resumes_.has_value(); }
  /// Call after the last line of each datagram; see Message::finish().
  void settle(Member& member) noexcept;
  /// A `restart` event. Every rank sends one, so the highest count of one member applies. The first event of
  /// a new generation announces the restart that is already counted.
  void announced_restart(Member& member) noexcept;

  std::optional<double> step() const noexcept { return step_; }
  double restarts() const noexcept { return restarts_; }
  double lost_steps() const noexcept { return lost_steps_; }

  /// The sum over the processes that have not sent run_stop; nullopt if none of them has the value.
  std::optional<double> memory(std::size_t state) const noexcept;

  /// A line, and one or two for each member.
  void save(RecordWriter& out) const;
  void restore(SavedReader& in);
  void restore_member(SavedReader& in);
  /// The second line of the last member.
  void restore_memory(SavedReader& in);

 private:
  void begin_generation(bool completed) noexcept;
  void update_step() noexcept;

  std::vector<Member> members_;
  bool worked_ = false;
  std::optional<double> step_;     ///< highest of the members; stays after they are gone
  std::optional<double> highest_;  ///< highest of this generation
  std::optional<double> resumes_;  ///< highest of the last generation, until this one's start is known
  std::uint32_t announced_ = 0;    ///< highest counted number of `restart` events of one member
  double restarts_ = 0;
  double lost_steps_ = 0;
};

}  // namespace gpumeter::jobs
