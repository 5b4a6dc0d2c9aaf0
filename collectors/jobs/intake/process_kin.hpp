#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"

namespace gpumeter::jobs {

/// Names the workload of a cgroup's path if all its processes serve one purpose: a Slurm job, a pod, a
/// container or a unit with a name of its own, whatever groups lie below. Empty for groups in which unrelated
/// programs live: login sessions, slices, transient scopes, user managers, system containers (LXC), VMs. Any
/// thread.
std::string workload_of_one_purpose(std::string_view group);

/// How processes belong together by /proc: who started whom, and who shares a cgroup. Remembers the answers
/// for a few seconds. One thread.
class ProcessKin {
 public:
  struct Facts {
    int parent = 0;        ///< 0: unknown, or none
    std::string group;     ///< path of its cgroup, as in workloads::ProcessUse; empty if it is nobody's
    std::string workload;  ///< workload_of_one_purpose() of the group
  };

  /// `procfs`: /proc, or a copy of it in tests.
  explicit ProcessKin(std::string procfs) : procfs_(std::move(procfs)) {}

  /// Forgets old answers. Once a second or so.
  void begin_pass(Nanoseconds now);

  /// Valid until the next begin_pass(). Reads two small files unless it remembers the answer.
  const Facts& of(int pid);

  /// Its parent, the parent's parent and so on, without init.
  std::vector<int> ancestors_of(int pid);

 private:
  struct Entry {
    Facts facts;
    Nanoseconds read_at{};
  };

  std::string procfs_;
  Nanoseconds now_{};
  std::map<int, Entry> entries_;
};

}  // namespace gpumeter::jobs
