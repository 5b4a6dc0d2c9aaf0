#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "collectors/jobs/model/cells.hpp"
#include "collectors/jobs/model/run.hpp"
#include "collectors/jobs/wire/line.hpp"
#include "collectors/jobs/wire/sender.hpp"

namespace gpumeter::jobs {

/// The label of sums that belong to no single run or user.
inline constexpr std::string_view kOther = "_other";

/// The quotas of one user, and of all users together. The values are A9 of the reference unless a comment
/// names another source. They bound the model to 5000 runs, 1024 users, 8192 senders and 40000 series,
/// whatever jobs send.
struct Limits {
  /// Of one user; a packed line counts once for each value. As many at once after a second of silence.
  unsigned lines_per_second = 2000;
  std::size_t series_per_run = 640;      ///< room for every histogram of training, or of serving (Bounds)
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

/// The budget of new series or users: `most` at once, and as many again over `renewal`.
inline TokenBucket budget_of(std::size_t most, Nanoseconds renewal, Nanoseconds now) noexcept {
  const auto capacity = static_cast<double>(most);
  return {capacity / to_seconds(renewal), capacity, now};
}

/// State that the users of one model share: their source in the store, the limits, the current usage, and the
/// counts of dropped data.
struct Shared {
  Source& source;
  Limits limits;
  const IsAlive is_alive;
  std::size_t series = 0;
  std::size_t members = 0;  ///< processes of runs: a process of two runs counts twice
  std::size_t processes = 0;
  /// Removes a run of the user with the most series, if that user has more than `series`. Returns false if
  /// there is none.
  std::function<bool(std::size_t series, Nanoseconds now)> make_room = {};
  std::array<std::uint64_t, kRefusalCount> dropped{};
  Cells other{RunSeries(source, kOther, kOther)};  ///< of user `_other`: sums for which no series was left
  Nanoseconds other_updated{};

  void drop(Refusal refusal, std::uint64_t count = 1) noexcept {
    dropped[static_cast<std::size_t>(refusal)] += count;
  }
};

/// The sender of the current lines, and the time.
struct Origin {
  SenderId id;
  const SenderFacts& facts;
  Moment now;
  Moment at;  ///< an MLLOG line's own time, otherwise `now`
};

/// A process that sent lines.
struct Process {
  Workload workload;      ///< at its first message
  std::string run;        ///< name in its last run_start: lines without a tag belong to this run
  std::string benchmark;  ///< MLLOG's submission_benchmark
  std::size_t series = 0;
  Nanoseconds last_seen{};
  bool is_gone = false;  ///< set by the current tick
  TokenBucket fresh;     ///< new series
};

/// A process in the run of a line. If there is no room for the run, `run` and `member` are nullptr. If there
/// is no room for the process, all three are.
struct Place {
  Process* process = nullptr;
  Run* run = nullptr;
  Member* member = nullptr;
};

/// Series that a user gets even if others hold the whole quota: a run with the histogram of its steps, and a
/// few further values.
inline constexpr std::size_t kFirstSeries = 180;

/// One user: its processes, its runs by the names that these report, and its part of the quotas. Writer
/// thread only.
///
/// Two jobs with the same run name stay apart by their workloads. A new process joins the run of its
/// workload. Otherwise it joins a run whose workload is unknown, or any run if its own workload is unknown.
/// Otherwise it continues a run that all processes have left and that did not end with success. A process in
/// a new container does so, but no run continues from one Slurm job to another. Otherwise it starts another
/// run, labelled NAME@WORKLOAD if the name itself is taken. A run keeps its label.
class User {
 public:
  using Runs = std::multimap<std::string, Run, std::less<>>;

  User(std::string label, Shared& shared, Nanoseconds now)
      : label_(std::move(label)),
        shared_(shared),
        other_(RunSeries(shared.source, kOther, label_)),
        bucket_(shared.limits.lines_per_second, shared.limits.lines_per_second, now),
        fresh_(budget_of(shared.limits.series_per_user, shared.limits.renewal_of_user, now)) {}

  const std::string& label() const noexcept { return label_; }
  /// Call it before each message: its time is also that of the charges.
  void heard(Nanoseconds now) noexcept { last_seen_ = now; }
  void set_rates(const Limits& limits) noexcept;
  /// Returns false if the user sent more lines than its rate allows.
  bool take_lines(Nanoseconds now, std::size_t count) noexcept {
    return bucket_.take(now, static_cast<double>(count));
  }

  /// Returns the name of a line's run: its tag `said`, otherwise the process's last run, otherwise its
  /// workload.
  std::string run_name(const Origin& from, std::string_view said) const;
  /// Finds the run, adds the process to an existing one, or creates one, as far as the quotas allow.
  Place place(const Origin& from, std::string_view run_name);

  bool has_room(const Place& place, std::size_t series) const noexcept;
  void charge(const Place& place, std::size_t series) noexcept;
  /// Returns the cell of a word. If there is no room, returns a cell of `_other` for a word that can be
  /// summed, otherwise nullptr. Both cases count as series_limit.
  Cell* cell(const Place& place, const Word& word, LabelChoice choice, Nanoseconds now);

  std::size_t series() const noexcept { return series_; }
  bool has_processes() const noexcept { return !processes_.empty(); }
  Nanoseconds last_seen() const noexcept { return last_seen_; }
  /// Removes one run, so that its series are free for other users: one without processes if there is any,
  /// otherwise the one that is silent the longest. Its values are added to `_other`. The user must have a
  /// run.
  void remove_run(Nanoseconds now);
  /// Takes this user's usage out of the totals in `shared`, before the user is removed.
  void uncharge() noexcept;

  /// Checks for each process whether it is alive.
  void find_gone(const Moment& now);
  /// Removes the processes that find_gone() marked and that have sent nothing since, and the expired runs.
  void remove_gone(const Moment& now);
  /// No run or process is left, and the user has been silent for as long as runs are kept.
  bool is_over(Nanoseconds now) const noexcept;
  /// Adds the usage of this user to the totals in `shared`, which the caller has set to 0.
  void count();

  /// Writes all values into their slots.
  void show(const Moment& now) const noexcept;
  const Runs& runs() const noexcept { return runs_; }

  /// A line, and the lines of its processes and runs. Another `label` renames the user.
  void save(RecordWriter& out, std::uint32_t account, std::string_view label) const;
  /// Reads one of these lines; `run` is the run that the following lines are about.
  void restore_line(SavedReader& in, Run*& run);
  /// True if each member of a run is a known process.
  bool is_whole() const;

 private:
  bool is_gone(const SenderId& id, Nanoseconds last_seen, Nanoseconds now) const;
  /// A process without a pid that has sent nothing for the run for as long as runs are kept.
  bool is_silent(const Member& member, Nanoseconds now) const noexcept;
  Process* process_of(const Origin& from);
  /// Returns the run of this name that the process is a member of; both nullptr if there is none.
  std::pair<Run*, Member*> find(const SenderId& id, std::string_view name) noexcept;
  bool has_left(const Member& member, Nanoseconds now);
  /// Returns the run that the process joins, after removing members that are gone. Returns nullptr if the
  /// process starts a new run.
  Run* run_to_join(const Workload& workload, std::string_view name, const Moment& now);
  Run* abandoned_run(const Workload& workload, std::string_view name, const Moment& now);
  Run& add_run(const Workload& workload, std::string_view name, const Moment& at);
  bool is_taken(const std::string& label) const noexcept;
  Run& restore_run(SavedReader& in);
  void restore_process(SavedReader& in);
  TokenBucket budget_of_process() const noexcept;
  bool has_budget(const Process& process) const noexcept;
  bool has_room(const Process& process, std::size_t series) const noexcept;
  bool make_room(const Process& process, std::size_t series, Nanoseconds now);
  Cell& cell_of_others(const Word& word, LabelChoice choice, Nanoseconds now);
  Cell& overflow_cell(const Word& word, LabelChoice choice, Nanoseconds now);

  const std::string label_;
  Shared& shared_;
  Cells other_;         ///< of run `_other`
  TokenBucket bucket_;  ///< lines
  TokenBucket fresh_;   ///< new series
  Nanoseconds last_seen_{};
  Runs runs_;
  std::map<SenderId, Process> processes_;
  std::size_t series_ = 0;
  std::size_t members_ = 0;
};

}  // namespace gpumeter::jobs
