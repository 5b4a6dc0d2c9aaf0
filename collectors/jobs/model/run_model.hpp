#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string_view>

#include "collectors/jobs/model/message.hpp"
#include "collectors/jobs/model/run_list.hpp"
#include "collectors/jobs/model/user.hpp"

namespace gpumeter::jobs {

/// The state of all jobs, as they report it. Runs are keyed by (uid, run, workload), so no user's messages
/// reach another's runs. A process that names no run belongs to one with the name of its workload. No message
/// makes it throw. One thread.
///
/// Values that find no room count under the user's run `_other`, so that sums over runs stay right (under
/// user `_other` if the whole is full). The sum of a gauge has no meaning, so its values are lost there. Both
/// count as series_limit.
class RunModel {
 public:
  /// `source` must outlive this object, which adds ml_* and gpumeter_jobs_dropped_total to it. The caller
  /// commits them after each tick().
  RunModel(Source& source, const Limits& limits, IsAlive is_alive);

  /// One datagram, frame or line of DogStatsD.
  void receive(const Sender& sender, std::string_view payload, const Moment& now);
  /// One line that an MLPerf job printed, of the run that the configuration names for its file. The sender is
  /// the file's owner, with a negative pid for the file. No rate applies: the reader of the file has one.
  void receive_mllog(const Sender& sender, std::string_view run, std::string_view line, const Moment& now);
  /// Changes the limits. What exceeds the new ones is kept; nothing is added until there is room.
  void set_limits(const Limits& limits) noexcept;
  /// What only the receiver sees: cut datagrams, lines over the bound, senders that are not let in.
  void drop(Refusal refusal, std::uint64_t count = 1) noexcept { shared_.drop(refusal, count); }

  /// Removes what is over, and writes all values into their slots. Once a second or so; asks for each process
  /// whether it is alive. Takes microseconds a run; with all quotas full, some 20 ms (measured).
  ///
  /// After that question and before the removal it calls `receive_last`, which should receive what is still
  /// queued, such as the run_stop that a process sent just before its end.
  void tick(const Moment& now, const std::function<void()>& receive_last = {});
  /// The runs as of the last tick.
  RunList runs() const;

  struct Usage {
    std::size_t users, runs, processes;
    std::size_t members;  ///< processes of runs: one of two runs counts twice
    std::size_t series;   ///< as taken off the quotas
  };
  Usage usage() const noexcept;

 private:
  User* user_of(const Sender& sender, const Moment& now);

  Shared shared_;
  std::map<std::uint32_t, User> users_;
  std::array<OwnedSlot, kRefusalCount> dropped_;
};

}  // namespace gpumeter::jobs
