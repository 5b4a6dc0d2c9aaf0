#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.hpp"
#include "collectors/jobs/model/job_series.hpp"
#include "collectors/jobs/model/limits.hpp"
#include "collectors/jobs/model/run.hpp"
#include "collectors/jobs/wire/mllog_line.hpp"

namespace gpumeter::jobs {

/// The state of all jobs, as they report it. Runs are keyed by (uid, run, workload), so no user's messages
/// reach another's runs, and two jobs that give their runs one name stay apart. One thread, the ingest's,
/// calls everything but snapshot(), which any thread may. Never throws for what is sent.
///
/// A process that is new to a run is of the one of its workload, or else of one whose workload is not known
/// (or of any, where its own is not). Otherwise it goes on with a run that all processes have left without
/// its having ended well, as one in a new container does, but not from one Slurm job to another. Otherwise it
/// begins a further one, whose label is NAME@WORKLOAD as long as the name itself is taken. A run keeps its
/// label. A process that names no run is of one with the name of its workload.
///
/// What finds no room is counted under the user's run `_other`, so that sums over runs stay right (under
/// user `_other` where the whole is full); of a gauge the sum has no meaning, so there it is lost. Both count
/// as series_limit.
class RunModel {
 public:
  RunModel(const Limits& limits, IsAlive is_alive) : is_alive_(std::move(is_alive)), limits_(limits) {}

  /// One datagram, frame or line of DogStatsD.
  void receive(const Sender& sender, std::string_view payload, const Moment& now);
  /// One line that an MLPerf job printed, of the run that the config gave its file's name. A file's owner
  /// is the sender, with a negative pid that says which file it is. No rate: whoever reads the file has one.
  void receive_mllog(const Sender& sender, std::string_view run, std::string_view line, const Moment& now);
  /// Others from now on. What is held beyond them stays; nothing is added until there is room.
  void set_limits(const Limits& limits) noexcept;
  /// What only the receiver sees: cut datagrams, lines over the bound, senders that are not let in.
  void drop(Refusal refusal, std::uint64_t count = 1) noexcept;

  /// Lets go of what is over, and makes a new snapshot. Once a second or so; asks for each process whether
  /// it is alive. Takes microseconds a run; with all quotas full, some 20 ms (measured).
  ///
  /// `receive_last` is called after that and before those that are gone are taken out: it should receive what
  /// is still to be read of them, such as the run_stop that a process sent just before its end.
  void tick(const Moment& now, const std::function<void()>& receive_last = {});
  /// The one that the last tick made; never nullptr. The mutex is held for the copy of a pointer.
  std::shared_ptr<const JobSnapshot> snapshot() const;

  struct Usage {
    std::size_t users, runs, processes;
    std::size_t members;  ///< processes of runs: one of two runs counts twice
    std::size_t series;   ///< as taken off the quotas
  };
  /// What is held now.
  Usage usage() const noexcept;

 private:
  struct Process {
    Workload workload;      ///< as it was at its first message
    std::string run;        ///< of its last run_start: where its lines without a tag belong
    std::string benchmark;  ///< MLLOG's submission_benchmark
    std::size_t series = 0;
    Nanoseconds last_seen{};
    bool is_gone = false;  ///< found so by the tick at hand
  };
  struct User {
    std::string label;
    TokenBucket bucket;
    Nanoseconds last_seen{};
    std::multimap<std::string, Run, std::less<>> runs;  ///< by the name that their processes give
    std::map<SenderId, Process> processes;
    Cells other;
    std::size_t series = 0;
    std::size_t members = 0;  ///< processes of runs, over all runs
  };
  /// Who sent the line at hand, and when.
  struct Origin {
    SenderId id;
    const SenderFacts& facts;
    User& user;
    Moment now;
    Moment at;  ///< an MLLOG line's own time, else now
  };
  /// The run of the line at hand and its sender in it; all nullptr where there was no room.
  struct Place {
    Process* process = nullptr;
    Run* run = nullptr;
    Member* member = nullptr;
  };
  struct Measure {
    const Word& word;
    LabelChoice choice;
    double value;
    double weight;
    std::string_view metric;
    std::optional<bool> lower_is_better;
  };

  User* user_of(const Sender& sender, const Moment& now);
  Process* process_of(const Origin& origin);

  void take(const Origin& origin, const Line& line);
  void take_metric(const Origin& origin, const MetricLine& line);
  void take_client_loss(const MetricLine& line);
  void take_values(const Origin& origin, const MetricLine& line, Measure measure);
  void take_event(const Origin& origin, const EventLine& line);
  void take_mllog(const Origin& origin, std::string_view run, const MllogLine& line);
  void take_samples(const Origin& origin, const Place& place, double so_far);
  void take_step(const Place& place, double step);
  void take_evaluation(const Origin& origin, const Place& place, const Measure& measure);
  void take_custom(const Origin& origin, const Place& place, const Measure& measure);
  void apply(const Origin& origin, const Place& place, const Measure& measure);
  void settle(const SenderId& id) noexcept;

  std::string run_name(const Origin& origin, std::string_view said) const;
  Place place(const Origin& origin, std::string_view run_name);
  Place place_of_member(const Origin& origin, Process& process, std::string_view run_name) const noexcept;
  Run* run_to_join(const Origin& origin, const Process& process, std::string_view run_name);
  Run* abandoned_run(const Origin& origin, const Workload& workload, std::string_view run_name);
  Run& add_run(const Origin& origin, const Process& process, std::string_view run_name);
  void remove_gone(const Origin& origin, Run& run);
  bool has_room(const Origin& origin, const Process& process, std::size_t series) const noexcept;
  bool has_room(const Origin& origin, const Place& place, std::size_t series) const noexcept;
  void charge(const Origin& origin, const Place& place, std::size_t series) noexcept;
  Cell* cell_of(const Origin& origin, const Place& place, const Measure& measure);
  Cell& overflow_cell(const Origin& origin, const Measure& measure);

  bool is_gone(const SenderId& id, Nanoseconds last_seen, const Moment& now) const;
  void find_gone(const Moment& now);
  void reap(User& user, const Moment& now);
  void expire_runs(User& user, const Moment& now);
  void publish(const Moment& now);

  const IsAlive is_alive_;

  // The ingest thread's.
  Limits limits_;
  std::map<std::uint32_t, User> users_;
  Cells other_;  ///< of nobody: where all series are given away
  Nanoseconds other_updated_{};
  std::size_t series_ = 0;
  std::size_t members_ = 0;
  std::size_t processes_ = 0;
  std::array<std::uint64_t, kRefusalCount> dropped_{};
  std::vector<Run*> unsettled_;  ///< of the payload at hand

  mutable Mutex mutex_;
  std::shared_ptr<const JobSnapshot> snapshot_ GPUMETER_GUARDED_BY(mutex_) = std::make_shared<JobSnapshot>();
};

}  // namespace gpumeter::jobs
