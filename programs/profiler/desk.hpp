#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "base/result.hpp"
#include "base/text.hpp"
#include "collectors/jobs/model/run_list.hpp"
#include "exporter/store/series_list.hpp"
#include "programs/profiler/settings.hpp"

/// Profiles of jobs on demand: processes that can be asked for a trace, and what asks them.
namespace gpumeter::profiles {

using jobs::RunName;

/// The length of a trace.
struct Extent {
  std::optional<unsigned> steps;  ///< nullopt: by time
  Nanoseconds duration = std::chrono::seconds(5);
};

/// An order for one trace.
struct Order {
  std::string path;  ///< absolute, as the process sees it, ending with ".json"; see Door::file_of()
  Extent extent;
};

/// A process that can be asked. The kernel identifies it.
struct Process {
  int pid = 0;  ///< in the program's pid namespace
  std::uint32_t uid = 0;

  bool operator==(const Process&) const = default;
};

/// How far a process is with its order.
enum class Stage : std::uint8_t { none, asked, taken, done, failed };

struct Progress {
  Stage stage = Stage::none;
  std::string why;  ///< of `failed`
};

/// One protocol by which frameworks accept orders. Each process has one order at most. No call blocks. Thread
/// "profiles".
class Door {
 public:
  virtual ~Door() = default;

  /// Sorted by pid.
  virtual std::vector<Process> processes() const = 0;
  /// Returns an Error if no such process is known, if it has an order, or if the protocol has no such extent.
  virtual Result<Done> ask(int pid, const Order& order, Nanoseconds now) = 0;
  virtual Progress progress(int pid) const = 0;
  /// Forgets the order. A trace that has begun continues.
  virtual void release(int pid) = 0;
  /// The file that the process writes for an order. `inner_pid`: its number in its own pid namespace.
  virtual std::string file_of(const Order& order, int pid, int inner_pid) const = 0;
  /// When the trace begins, for the user that asks.
  virtual std::string_view begins() const noexcept = 0;
  /// False: no condition can take a trace of the process, because nobody would write the file.
  virtual bool serves_conditions(int) const noexcept { return true; }
};

/// One process of a request.
struct Member {
  Door* door = nullptr;
  int pid = 0;        ///< in the program's pid namespace
  int inner_pid = 0;  ///< in the process's own, as in the name of its file
};

/// The file that the process writes for an order.
std::string file_of(const Order& order, const Member& member);

/// A request for a profile of one run or process.
struct Request {
  RunName run;
  std::string trigger;  ///< "request", or the name of a condition
  std::string reason;   ///< for the log
  Order order;
  std::vector<Member> members;  ///< at least one
};

/// The end of a request for a profile.
enum class Status : std::uint8_t {
  done,     ///< each process took its trace
  failed,   ///< a process ended or rejected the order
  timeout,  ///< a process did not take the order or did not end its trace in time
  refused   ///< cooldown, budget, or another trace under way
};
inline constexpr EnumNames<Status, 4> kStatusNames = {{{Status::done, "done"},
                                                       {Status::failed, "failed"},
                                                       {Status::timeout, "timeout"},
                                                       {Status::refused, "refused"}}};

/// What became of a request.
struct Outcome {
  Status status = Status::done;
  std::string error;  ///< unless `done`
  Nanoseconds took{};
};

/// The requests under way. Thread "profiles". Times are CLOCK_MONOTONIC.
class Desk {
 public:
  using Number = std::uint64_t;

  /// A change of one request: a line for the client that asked, and the outcome when it is over.
  struct Event {
    Number number = 0;
    std::string line;  ///< "taken PID", "done PID FILE", "failed PID REASON"; empty with an outcome
    std::optional<Outcome> outcome;
    Request request;  ///< with an outcome
  };

  /// The longest wait for a process to take an order. Kineto polls every 5 s unless its own configuration
  /// says otherwise.
  static constexpr Nanoseconds kTake = std::chrono::seconds(60);
  /// The longest time from then to the end of the trace, in addition to its duration. Kineto's first use of
  /// CUPTI takes seconds, and it may write hundreds of MB.
  static constexpr Nanoseconds kWrite = std::chrono::minutes(2);
  /// The same for a trace of steps, whose duration is not known.
  static constexpr Nanoseconds kSteps = std::chrono::minutes(15);
  /// The longest wait for a client to find the file of a trace. It looks for 2 s, for one of up to 8 after
  /// the other.
  static constexpr Nanoseconds kSee = std::chrono::seconds(30);

  /// Gives the orders. Returns an Error if one of the processes has an order already, or is unknown.
  Result<Number> open(Request request, Nanoseconds now);
  /// Returns what changed since the last call. Call it several times a second while busy().
  std::vector<Event> tick(Nanoseconds now);
  /// The client found the file of a trace that is done; with an error, it did not, and the request fails. A
  /// request of a user ends only then, because a process does not report that it could not write its file.
  /// Returns false if the request does not wait for this.
  bool seen(Number number, int pid, const std::string& error);
  /// The client has left: withdraws orders that no process has taken yet. A trace counts without its file.
  void abandon(Number number);

  bool busy() const noexcept { return !open_.empty(); }
  std::size_t size() const noexcept { return open_.size(); }
  /// True if a condition's request is under way.
  bool has_automatic() const noexcept;
  /// The processes that have an order, of all requests or of one.
  std::vector<int> pids(std::optional<Number> number = {}) const;
  /// The process has its order from this request.
  bool has(Number number, int pid) const;

 private:
  struct Place {
    Member member;
    Stage stage = Stage::asked;  ///< as last reported
    Nanoseconds since{};         ///< of that stage
    bool is_unseen = false;      ///< the client looks for the file
  };
  struct Open {
    Number number = 0;
    Request request;
    Nanoseconds began{};
    std::vector<Place> places;
    std::string error;
    bool is_late = false;
    bool has_client = false;
  };

  static void look(Open& open, Place& place, Nanoseconds now, std::vector<Event>& events);
  static bool is_over(const Open& open) noexcept;
  static Event closed(Open& open, Nanoseconds now);

  Number last_ = 0;
  std::vector<Open> open_;
};

/// The trigger of a request of a user, as a label.
inline constexpr const char* kByRequest = "request";

/// Counts the profiles of each run. One thread. Times are CLOCK_BOOTTIME unless named otherwise.
class Ledger {
 public:
  /// Runs that are remembered. Another one takes the place of the run that is unused the longest.
  static constexpr std::size_t kMostRuns = 512;

  /// `unix`: CLOCK_REALTIME.
  void count(const RunName& run, const std::string& trigger, Status status, Nanoseconds now,
             Nanoseconds unix);
  /// Adds ml_profiles_total and ml_profile_last_timestamp_seconds.
  void write(SeriesList& out) const;
  /// Forgets runs without a profile in 24 hours.
  void tick(Nanoseconds now);

 private:
  struct Page {
    std::map<std::pair<std::string, Status>, std::uint64_t> counts;  ///< by trigger and status
    std::map<std::string, double> last;                              ///< Unix time, by trigger
    Nanoseconds used{};
  };

  Page& page(const RunName& run, Nanoseconds now);

  std::map<RunName, Page> pages_;
};

/// The profiles that conditions took in the last 24 hours, at most `per_host`, and whether the budget permits
/// another one. Survives a restart and a reboot. Any
/// thread.
class BudgetBook {
 public:
  /// `clock` must outlive this object.
  BudgetBook(const Budget& budget, const Clock& clock) : budget_(budget), clock_(clock) {}

  /// Returns why no condition may profile the run now; nullopt: it may.
  std::optional<std::string> refusal(const RunName& run) GPUMETER_EXCLUDES(mutex_);
  /// A condition's profile of the run begins.
  void spend(const RunName& run) GPUMETER_EXCLUDES(mutex_);

  /// Lines for load() (base/records.hpp).
  std::string save() GPUMETER_EXCLUDES(mutex_);
  /// Replaces the contents by those that an earlier process saved. Within one boot CLOCK_BOOTTIME continues.
  /// After a reboot, the time since then is that of CLOCK_REALTIME; if that clock was set back, a profile
  /// counts as taken now. Returns an Error for other lines, and then changes nothing.
  Result<Done> load(std::string_view section, bool is_of_this_boot) GPUMETER_EXCLUDES(mutex_);

  /// load() from the file that keep() wrote in the folder, if there is one. Empty: no folder.
  Result<Done> resume(const std::string& folder);
  /// Writes the file anew if save() has changed. One thread, which waits for the file system.
  Result<Done> keep(const std::string& folder);

 private:
  struct Spent {
    RunName run;
    Nanoseconds boot{};  ///< CLOCK_BOOTTIME of this boot; negative before it
    Nanoseconds unix{};  ///< CLOCK_REALTIME
  };

  Nanoseconds forget_old() GPUMETER_REQUIRES(mutex_);

  const Budget budget_;
  const Clock& clock_;
  std::string kept_;  ///< what the file has
  mutable Mutex mutex_;
  std::deque<Spent> spent_ GPUMETER_GUARDED_BY(mutex_);  ///< the oldest first
};

}  // namespace gpumeter::profiles
