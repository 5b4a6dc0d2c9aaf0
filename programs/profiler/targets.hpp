#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/proc.hpp"
#include "base/result.hpp"
#include "collectors/jobs/join/run_join.hpp"
#include "collectors/jobs/wire/sender.hpp"
#include "programs/profiler/asking.hpp"
#include "programs/profiler/desk.hpp"

namespace gpumeter::profiles {

/// Who asks for a profile.
struct Asker {
  int pid = 0;
  std::uint32_t uid = 0;
  Result<std::vector<int>> numbers;  ///< PeerProcess::numbers()
};

/// Finds the processes that a request is about. Reads a few small files of /proc. Thread "profiles".
///
/// The processes of a run are those that report it. If none of them can be asked, those that jobs::RunOwners
/// assigns to the run count, but not the launcher of processes that do.
///
/// A user may ask for the processes with his uid, or a subordinate uid of his; root for all. A client in
/// another pid namespace, such as that of a container, may ask only for processes in its own cgroup: uid 0 of
/// a container is root to the kernel, and the users of two containers may have the same uid. A client whose
/// namespaces or cgroup are not known gets nothing.
class Targets {
 public:
  struct Sources {
    std::string procfs;
    std::function<std::uint32_t(std::uint32_t uid)> owner_of;
    std::function<std::string(std::uint32_t uid)> name_of;
    std::vector<std::string> users;  ///< names or uids whose jobs may be profiled; empty: all
  };
  /// The processes of one run.
  struct Found {
    RunName run;
    std::vector<Member> members;
  };

  /// The most processes of a run that take a trace at once. The others of a run do the same work.
  static constexpr std::size_t kMostMembers = 8;

  /// `doors`: in the order of preference, if a process is known to several.
  Targets(Sources sources, std::vector<Door*> doors)
      : sources_(std::move(sources)), doors_(std::move(doors)), kin_(sources_.procfs), owners_(kin_) {}

  Result<Found> find(const Asked& asked, const Asker& asker, const std::shared_ptr<const jobs::RunList>& runs,
                     Nanoseconds now);
  /// Returns one process of the run for a condition's profile, one of `preferred` (pids) if there is one; an
  /// empty list if none can be asked or the user is not admitted.
  Found first_of(const RunName& run, const std::set<int>& preferred,
                 const std::shared_ptr<const jobs::RunList>& runs, Nanoseconds now);
  bool is_alive(int pid) const;

 private:
  /// A process that can be asked, with its run.
  struct Candidate {
    Process process;
    Door* door = nullptr;
    std::vector<int> numbers;
    std::vector<RunName> runs;
    bool reports = false;  ///< it reports a run itself; otherwise it is a relative, such as the launcher
  };

  std::vector<Candidate> candidates(const std::function<bool(const Process&)>& is_wanted,
                                    const std::shared_ptr<const jobs::RunList>& runs, Nanoseconds now);
  Candidate candidate(const Process& process, Door& door, const jobs::RunList& runs);
  static std::vector<const Candidate*> of_run(const std::function<bool(const RunName&)>& is_it,
                                              const std::vector<Candidate>& from);
  bool is_admitted(std::uint32_t uid) const;
  std::vector<int> numbers_of(int pid) const;
  static Member member_of(const Candidate& candidate);
  Result<Found> of_pid(int pid, std::size_t depth, const std::vector<Candidate>& from) const;
  Result<Found> of_run(const std::string& run, const std::vector<Candidate>& from) const;

  const Sources sources_;
  const std::vector<Door*> doors_;
  jobs::ProcessKin kin_;
  jobs::RunOwners owners_;
};

}  // namespace gpumeter::profiles
