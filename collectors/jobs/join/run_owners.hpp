#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collectors/attribution/device_use.hpp"
#include "collectors/jobs/intake/process_kin.hpp"
#include "collectors/jobs/model/run_list.hpp"

namespace gpumeter::jobs {

/// Decides which runs a process on a GPU works for. The process need not report the run itself: a server
/// reports while its engine computes, and a launcher reports while its workers train. The first rule that
/// applies decides:
///
/// 1. the process reports the run itself;
/// 2. the nearest of its ancestors that report, or otherwise its descendants that report;
/// 3. processes of its user and in its workload (Slurm job, pod, unit) report one run, and no other.
///
/// The first two rules use data from the kernel. Rule 3 is a guess for the ranks of a run if only rank 0
/// reports it. A common cgroup alone proves nothing: a server may run beside a training in one container.
///
/// A decision holds until another rule decides otherwise, so that the last figures of an ended process count
/// for its run. If the process still runs, as a notebook does, the decision ends in the second pass after the
/// end of the run. A guess also ends when a second run reports in the workload. One thread.
class RunOwners {
 public:
  struct Owners {
    std::vector<RunName> runs;  ///< sorted; several if the process reports several runs
    bool is_guess = false;      ///< decided by rule 3
  };

  explicit RunOwners(ProcessKin& kin) : kin_(kin) {}

  /// Takes the processes that report now. Call about once a second; `jobs` must stay valid until end_pass().
  void begin_pass(const RunList& jobs);

  /// Returns the owners of a process on a device. Each of them has an equal share of it.
  const Owners& of(const workloads::ProcessUse& use);

  /// Removes the processes that this pass did not ask for.
  void end_pass();

 private:
  struct Decision {
    Owners owners;
    int ended = 0;  ///< passes since the last owner ended; the first still measures mostly its energy
    bool asked_for = false;
  };
  using Workload = std::pair<std::uint32_t, std::string>;  // of a user

  using Runs = std::vector<RunName>;
  /// The runs that processes report, by the ancestors and workloads of these processes.
  struct Index {
    std::map<int, Runs> by_ancestor;
    std::map<Workload, Runs> by_workload;
  };

  Runs reported_by(int pid, std::uint64_t start_ticks) const;
  Runs of_kin(const workloads::ProcessUse& use);
  Runs of_workload(const workloads::ProcessUse& use);
  const Index& index();

  ProcessKin& kin_;
  std::multimap<int, const RunProcess*> reporters_;
  std::optional<Index> index_;  ///< nullopt until this pass needs it
  std::map<workloads::ProcessId, Decision> decisions_;
};

}  // namespace gpumeter::jobs
