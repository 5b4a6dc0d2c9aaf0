#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "collectors/attribution/device_use.hpp"
#include "collectors/nccl/gate.hpp"
#include "collectors/nccl/progress.hpp"
#include "collectors/nccl/run_labels.hpp"
#include "collectors/nccl/settings.hpp"
#include "collectors/sources/tcp/listeners.hpp"

namespace gpumeter::nccl {

/// Asks the NCCL of each user's job on this machine, if the gate permits, and keeps what the answers show.
/// One thread, which a query occupies for 15 s at most.
class Watch {
 public:
  static constexpr Nanoseconds kLook =
      std::chrono::seconds(10);  ///< between two looks at processes and sockets
  static constexpr Nanoseconds kIdleLook = std::chrono::seconds(2);  ///< while no process is on a GPU
  static constexpr int kSeldom = 10;  ///< intervals between queries if another machine leads the job
  static constexpr int kKept = 3;     ///< queries without an answer after which a run leaves the page

  struct Parts {
    const Clock& clock;
    std::function<std::vector<std::shared_ptr<const workloads::DeviceUse>>()> uses;
    /// The run that a process works for, if one of the job's processes reports it.
    std::function<std::optional<RunLabels>(const workloads::ProcessUse&)> run_of;
    std::function<std::string(std::uint32_t uid)> user_name;
    /// Takes a change of a user's state, for the log. An empty reason: the queries are answered.
    std::function<void(const std::string& user, State state, const std::string& reason)> say;
    int waker = -1;  ///< an eventfd that ends a query, or -1
    std::string procfs = "/proc";
  };
  Watch(Parts parts, Settings settings);

  /// Asks those whose time has come. Returns the pause until the next turn.
  Nanoseconds turn();
  /// Adds the series of all runs, and gpumeter_nccl_state.
  void write(SeriesList& out) const;

 private:
  struct Process {
    workloads::ProcessUse use;
    std::set<std::pair<unsigned, std::string>> gpus;  // index and uuid
  };
  using Processes = std::map<int, Process>;  // by pid
  struct User {
    std::string name;
    Processes processes;                   // on GPUs
    std::vector<tcp::Listener> listeners;  // of RAS; all processes of one user share the port
    std::optional<State> state;            // nullopt: not decided yet
    std::string reason;
    int failures = 0;  // since the last answer
  };
  struct Run {
    Progress progress;
    Nanoseconds answered_at{};  // CLOCK_MONOTONIC
    Nanoseconds answered_at_unix{};
    Nanoseconds expected_every{};  // until the next answer
    std::uint32_t uid = 0;
    bool is_reported = false;  // by the job; otherwise named by its workload
    std::set<std::pair<unsigned, std::string>> gpus;
  };

  /// Returns true if a process is on a GPU.
  bool look();
  /// The sockets that listen on the port of RAS, and that loopback reaches.
  std::vector<tcp::Listener> ras_listeners() const;
  void serve(std::uint32_t uid, User& user);
  bool has_changed(std::uint32_t uid, const std::set<std::uint64_t>& sockets) const;
  void note(User& user, State state, std::string reason);
  Result<Done> ask(std::uint32_t uid, User& user, const Verdict& verdict);
  std::vector<int> members_in(const Answer& answer, const User& user, const Verdict& verdict) const;
  std::pair<RunLabels, bool> run_of(const User& user, const std::vector<int>& pids) const;
  void forget();

  const Parts parts_;
  const Settings settings_;
  Gate gate_;
  std::map<std::uint32_t, User> users_;  // by uid; those with a listening socket and a process on a GPU
  std::map<std::uint32_t, Nanoseconds> next_query_;  // by uid; also of users that left meanwhile
  std::map<RunLabels, Run> runs_;
};

}  // namespace gpumeter::nccl
