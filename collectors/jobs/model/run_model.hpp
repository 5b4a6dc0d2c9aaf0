#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string_view>

#include "base/mutex.hpp"
#include "collectors/jobs/model/job_series.hpp"
#include "collectors/jobs/model/message.hpp"
#include "collectors/jobs/model/user.hpp"

namespace gpumeter::jobs {

/// The state of all jobs, as they report it. Runs are keyed by (uid, run, workload), so no user's messages
/// reach another's runs. A process that names no run belongs to one with the name of its workload. One
/// thread, the ingest's, calls everything but snapshot(), which any thread may. No message makes it throw.
///
/// Values that find no room count under the user's run `_other`, so that sums over runs stay right (under
/// user `_other` if the whole is full). The sum of a gauge has no meaning, so its values are lost there. Both
/// count as series_limit.
class RunModel {
 public:
  RunModel(const Limits& limits, IsAlive is_alive) : shared_{limits, std::move(is_alive)} {}

  /// One datagram, frame or line of DogStatsD.
  void receive(const Sender& sender, std::string_view payload, const Moment& now);
  /// One line that an MLPerf job printed, of the run that the configuration names for its file. The sender is
  /// the file's owner, with a negative pid for the file. No rate applies: the reader of the file has one.
  void receive_mllog(const Sender& sender, std::string_view run, std::string_view line, const Moment& now);
  /// Changes the limits. What exceeds the new ones is kept; nothing is added until there is room.
  void set_limits(const Limits& limits) noexcept;
  /// What only the receiver sees: cut datagrams, lines over the bound, senders that are not let in.
  void drop(Refusal refusal, std::uint64_t count = 1) noexcept { shared_.drop(refusal, count); }

  /// Removes what is over, and makes a new snapshot. Once a second or so; asks for each process whether it is
  /// alive. Takes microseconds a run; with all quotas full, some 20 ms (measured).
  ///
  /// After that question and before the removal it calls `receive_last`, which should receive what is still
  /// queued, such as the run_stop that a process sent just before its end.
  void tick(const Moment& now, const std::function<void()>& receive_last = {});
  /// The one that the last tick made; never nullptr. The mutex is held for the copy of a pointer.
  std::shared_ptr<const JobSnapshot> snapshot() const;

  struct Usage {
    std::size_t users, runs, processes;
    std::size_t members;  ///< processes of runs: one of two runs counts twice
    std::size_t series;   ///< as taken off the quotas
  };
  Usage usage() const noexcept;

 private:
  User* user_of(const Sender& sender, const Moment& now);
  void publish(const Moment& now);

  // The ingest thread's.
  Shared shared_;
  std::map<std::uint32_t, User> users_;

  mutable Mutex mutex_;
  std::shared_ptr<const JobSnapshot> snapshot_ GPUMETER_GUARDED_BY(mutex_) = std::make_shared<JobSnapshot>();
};

}  // namespace gpumeter::jobs
