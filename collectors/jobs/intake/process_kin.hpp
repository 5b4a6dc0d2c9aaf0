#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"

namespace gpumeter::jobs {

/// Names the workload of a cgroup's path if all its processes serve one purpose. These are Slurm jobs, pods,
/// containers and units with a name of their own, including the groups below them. Empty for groups of
/// unrelated programs: login sessions, slices, transient scopes, user managers, system containers (LXC), VMs.
/// Any thread.
std::string workload_of_one_purpose(std::string_view group);

/// Relations between processes from /proc: parents and common cgroups. Caches the answers for a few seconds.
/// One thread.
class ProcessKin {
 public:
  struct Facts {
    int parent = 0;        ///< 0: unknown or none
    std::string group;     ///< cgroup path, as in workloads::ProcessUse; empty if unattributed
    std::string workload;  ///< workload_of_one_purpose() of the group
  };

  /// `procfs`: /proc, or a copy of it in tests.
  explicit ProcessKin(std::string procfs) : procfs_(std::move(procfs)) {}

  /// Removes old answers. Call about once a second.
  void begin_pass(Nanoseconds now);

  /// Valid until the next begin_pass(). Reads two small files unless the answer is cached.
  const Facts& of(int pid);

  /// Returns the parent, the parent's parent and so on, without init.
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
