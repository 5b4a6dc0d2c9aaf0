#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "collectors/jobs/model/shared.hpp"
#include "collectors/jobs/model/user_runs.hpp"

namespace gpumeter::jobs {

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

/// One user: its processes, its runs, and its part of the quotas. Writer thread only.
class User {
 public:
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
  const UserRuns& runs() const noexcept { return runs_; }

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
  UserRuns runs_;
  std::map<SenderId, Process> processes_;
  std::size_t series_ = 0;
  std::size_t members_ = 0;
};

}  // namespace gpumeter::jobs
