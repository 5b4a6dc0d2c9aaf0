#pragma once

#include <map>
#include <span>
#include <string>
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
/// 3. the nearest of its ancestors that tell, or else its descendants that do.
///
/// (Rules A4 of the reference. Where a cgroup has several runs, as a login session may, it says nothing.)
/// What was decided of a process holds until it tells otherwise, so that the last figures of one that has
/// ended find their run. One thread.
class RunOwners {
 public:
  explicit RunOwners(ProcessKin& kin) : kin_(kin) {}

  /// Who tells of runs now. Once a second or so; `processes` must stand until the next call.
  void begin_pass(std::span<const RunProcess> processes);

  /// In order; several where the process tells of several itself, which then have equal parts in it; none:
  /// nobody's. `use` is of a device.
  const std::vector<RunName>& of(const workloads::ProcessUse& use);

  /// Forgets the processes that were not asked for in this pass.
  void end_pass();

 private:
  struct Decision {
    std::vector<RunName> runs;
    bool asked_for = false;
  };

  std::vector<RunName> told_by(int pid, std::uint64_t start_ticks) const;
  std::vector<RunName> of_group(const workloads::ProcessUse& use);
  std::vector<RunName> of_kin(const workloads::ProcessUse& use);

  ProcessKin& kin_;
  std::multimap<int, const RunProcess*> tellers_;
  std::map<workloads::ProcessId, Decision> decisions_;
};

}  // namespace gpumeter::jobs
