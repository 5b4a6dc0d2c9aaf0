#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "collectors/jobs/model/run_list.hpp"
#include "collectors/jobs/model/user.hpp"

namespace gpumeter::jobs {

/// The state of all jobs, as they report it. Runs are keyed by (user, run, workload), so no user's messages
/// affect another user's runs. All subordinate uids of a user count as that user. A process that names no run
/// belongs to a run with the name of its workload. No message makes the model throw. One thread.
///
/// The label of a user whose name is not known yet is the number. The first message with the name gives all
/// series and runs of the user the name; the number leaves the page.
///
/// Values that exceed a quota count under the user's run `_other`, so that sums over runs stay right. If the
/// quota of all users is full, they count under user `_other`. Gauges cannot be summed, so their values are
/// dropped. Both cases count as series_limit.
///
/// Other users cannot keep a newcomer out. If the quota of all users is full, the first series of a user
/// (kFirstSeries) take the place of a run of the user with the most series: one whose processes have ended if
/// there is any, otherwise the one that is silent the longest. Its values count under `_other`. If there are
/// too many users, a newcomer takes the place of the user without processes that is silent the longest.
///
/// The quotas hold for the series that are present. New series, and users without a name, have budgets in
/// addition (Limits), so that runs or uids without end do not become series of Prometheus without end.
class RunModel {
 public:
  /// The model adds ml_* and gpumeter_jobs_dropped_total to `source`, which must outlive it. The caller
  /// commits them after each tick().
  RunModel(Source& source, const Limits& limits, IsAlive is_alive);

  /// One datagram, frame or line of DogStatsD.
  void receive(const Sender& sender, std::string_view payload, const Moment& now);
  /// One line that an MLPerf job logged. `run`: the name that the configuration gives to the file. The sender
  /// is the file's owner, with a negative pid. No rate limit applies, because the reader of the file has one.
  void receive_mllog(const Sender& sender, std::string_view run, std::string_view line, const Moment& now);
  /// Changes the limits. Series over the new limits are kept, but none is added until there is room.
  void set_limits(const Limits& limits) noexcept;
  /// Counts what only the receiver detects: cut datagrams, lines over the limit, senders that are not
  /// admitted.
  void drop(Refusal refusal, std::uint64_t count = 1) noexcept { shared_.drop(refusal, count); }

  /// Removes ended processes and expired runs, and writes all values into their slots. Call about once a
  /// second; it checks whether each process is alive. Takes microseconds a run, and about 20 ms with all
  /// quotas full (measured).
  ///
  /// Calls `receive_last` between the check and the removal. It should receive the messages that are still
  /// queued, such as the run_stop that a process sent just before its end.
  void tick(const Moment& now, const std::function<void()>& receive_last = {});
  /// The runs as of the last tick.
  RunList runs() const;

  struct Usage {
    std::size_t users, runs, processes;
    std::size_t members;  ///< a process of two runs counts twice
    std::size_t series;   ///< charged to the quotas
  };
  Usage usage() const noexcept;

  /// The section of the state file.
  std::string save(const Moment& now) const;
  /// Takes the runs of an earlier process. Call it before any message. On an Error there are none.
  Result<Done> restore(std::string_view section, const Moment& now, bool is_of_this_boot);

 private:
  using Users = std::map<std::uint32_t, User>;  ///< by Sender::account()

  User* user_of(const Sender& sender, const Moment& now);
  Users::iterator give_name(Users::iterator user, std::string_view name, Nanoseconds now);
  void read(SavedReader& in, Users& users, Nanoseconds now);
  bool make_room_for_series(std::size_t series, Nanoseconds now);
  bool make_room_for_user();

  Shared shared_;
  Users users_;
  TokenBucket nameless_;  ///< new users without a name: the uids that a process may choose
  bool is_full_ = false;  ///< since the last tick no user could be removed for another
  std::array<OwnedSlot, kRefusalCount> dropped_;
};

}  // namespace gpumeter::jobs
