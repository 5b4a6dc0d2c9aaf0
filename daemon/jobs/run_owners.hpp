#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collectors/jobs/job_series.hpp"
#include "collectors/workloads/device_use.hpp"
#include "daemon/jobs/process_kin.hpp"

namespace gpumeter::jobs {

/// Which runs a process on a GPU works for. It need not be the one that tells of the run: a server answers
/// while its engine computes, a launcher tells while its workers train. The first of these that says
/// anything:
///
/// 1. the process tells of the run itself;
/// 2. processes of its user and in its cgroup tell of one run, and of no other;
/// 3. the nearest of its ancestors that tell, or else its descendants that do;
/// 4. processes of its user and in its workload (Slurm job, pod, unit) tell of one run, and of no other.
///
/// (Rules A4 of the reference. Where a cgroup has several runs, as a login session may, it says nothing.) The
/// first three are the kernel's word. The fourth is a guess, for the ranks of a run of which only rank 0
/// tells: Slurm and Kubernetes put each task or container into a cgroup of its own.
///
/// A decision holds until another rule says otherwise, so that the last figures of a process that has ended
/// find their run. It also ends in the second pass after the run's end if the process still runs: what a
/// notebook uses from then on is not the run's. A guess also ends when a second run tells in the workload.
/// One thread.
class RunOwners {
 public:
  struct Owners {
    std::vector<RunName> runs;  ///< in order; several where the process itself tells of several
    bool is_guess = false;      ///< by rule 4
  };

  explicit RunOwners(ProcessKin& kin) : kin_(kin) {}

  /// Who tells of runs now. Once a second or so; `jobs` must stand until the next call.
  void begin_pass(const JobSnapshot& jobs);

  /// Several runs have equal parts in the process; none: it is nobody's. `use` is of a device.
  const Owners& of(const workloads::ProcessUse& use);

  /// Forgets the processes that were not asked for in this pass.
  void end_pass();

 private:
  struct Decision {
    Owners owners;
    int ended = 0;  ///< passes since the last of the owners ended; in the first, energy is mostly of before
    bool asked_for = false;
  };
  using Workload = std::pair<std::uint32_t, std::string>;  // of a user

  std::vector<RunName> told_by(int pid, std::uint64_t start_ticks) const;
  std::vector<RunName> of_group(const workloads::ProcessUse& use);
  std::vector<RunName> of_kin(const workloads::ProcessUse& use);
  const std::vector<RunName>& of_workload(const workloads::ProcessUse& use);
  void find_workloads();

  ProcessKin& kin_;
  std::multimap<int, const RunProcess*> tellers_;
  // Which runs tell in each workload; nullopt until a process is asked for that the other rules know nothing
  // of.
  std::optional<std::map<Workload, std::vector<RunName>>> workloads_;
  std::map<workloads::ProcessId, Decision> decisions_;
};

}  // namespace gpumeter::jobs
