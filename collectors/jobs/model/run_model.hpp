#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "collectors/jobs/model/run_list.hpp"
#include "collectors/jobs/wire/line.hpp"
#include "collectors/jobs/wire/sender.hpp"
#include "exporter/store/store.hpp"

namespace gpumeter::jobs {

class Users;

/// The quotas of one user, and of all users together. The values are A9 of the reference unless a comment
/// names another source. They bound the model to 5000 runs, 1024 users, 8192 senders and 40000 series,
/// whatever jobs send.
struct Limits {
  /// Of one user; a packed line counts once for each value. As many at once after a second of silence.
  unsigned lines_per_second = 2000;
  std::size_t series_per_run = 680;      ///< room for every histogram of training, or of serving (Bounds)
  std::size_t series_per_sender = 1280;  ///< see most_of_sender()
  std::size_t series_per_user = 8192;
  std::size_t series = 40000;
  std::size_t evaluations_per_run = 8;  ///< values of `metric`, which is not a closed set
  std::size_t customs_per_run = 16;     ///< of ml_custom: a few scalars, not a log of every weight
  std::size_t senders_per_user = 1024;  ///< more ranks and loaders than one machine runs
  std::size_t senders = 8192;
  std::size_t users = 1024;
  Nanoseconds retention = std::chrono::minutes(10);  ///< of a run without senders; at least two scrapes
  /// New series have budgets of their own, because every one stays in Prometheus after it has left the page.
  /// A full budget is as large as the limit of the series that are present, and an empty one is full again
  /// after this time.
  Nanoseconds renewal_of_sender =
      std::chrono::hours(1);  ///< of series_per_sender: few processes begin many runs
  Nanoseconds renewal_of_user = std::chrono::minutes(15);  ///< of series_per_user: short jobs on every GPU
  Nanoseconds renewal_of_users = std::chrono::hours(1);    ///< of `users`, for new ones without a name

  std::size_t most_of_sender() const noexcept { return std::max(series_per_sender, series_per_run); }
  bool operator==(const Limits&) const = default;
};

/// Series that a run has in addition to its cells and evaluations: start, stop, run time, last update,
/// restarts, lost steps, step, info. The quotas are charged for all of them when the run is created.
inline constexpr std::size_t kSeriesOfEveryRun = 8;

/// Tokens arrive at a steady rate, and each line takes some. Up to `capacity` unused tokens are kept. A line
/// may take more tokens than there are; the next ones then wait until the debt is paid. One thread.
class TokenBucket {
 public:
  TokenBucket(double rate, double capacity, Nanoseconds now) noexcept
      : rate_(rate), capacity_(capacity), tokens_(capacity), filled_(now) {}

  /// Changes the limits. Unused tokens are kept up to the new capacity.
  void set(double rate, double capacity) noexcept {
    rate_ = rate;
    capacity_ = capacity;
    tokens_ = std::min(tokens_, capacity);
  }

  bool take(Nanoseconds now, double tokens = 1) noexcept {
    tokens_ = tokens_at(now);
    filled_ = std::max(filled_, now);
    if (tokens_ < 1) return false;
    tokens_ -= tokens;
    return true;
  }
  bool is_full(Nanoseconds now) const noexcept { return tokens_at(now) >= capacity_; }
  bool has_any(Nanoseconds now) const noexcept { return tokens_at(now) >= 1; }

 private:
  double tokens_at(Nanoseconds now) const noexcept {
    return std::min(capacity_, tokens_ + rate_ * std::max(0.0, to_seconds(now - filled_)));
  }

  double rate_;
  double capacity_;
  double tokens_;
  Nanoseconds filled_;
};

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
  ~RunModel();

  /// One datagram, frame or line of DogStatsD. `sent`: if it is known; a busy machine delivers it later.
  void receive(const Sender& sender, std::string_view payload, const Moment& now,
               const std::optional<Moment>& sent = std::nullopt);
  /// One line that an MLPerf job logged. `run`: the name that the configuration gives to the file. The sender
  /// is the file's owner, with a negative pid. No rate limit applies, because the reader of the file has one.
  void receive_mllog(const Sender& sender, std::string_view run, std::string_view line, const Moment& now);
  /// Changes the limits. Series over the new limits are kept, but none is added until there is room.
  void set_limits(const Limits& limits) noexcept;
  /// Counts what only the receiver detects: cut datagrams, lines over the limit, senders that are not
  /// admitted.
  void drop(Refusal refusal, std::uint64_t count = 1) noexcept;

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
  const std::unique_ptr<Users> users_;
};

}  // namespace gpumeter::jobs
