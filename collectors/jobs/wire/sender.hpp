#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "collectors/attribution/cgroup/workload_of.hpp"

namespace gpumeter::jobs {

/// A process as the kernel identifies it. Identity reported by the process itself is ignored. The start time
/// (field 22 of /proc/PID/stat) distinguishes the process from a later one with the same number.
struct SenderId {
  std::uint32_t uid = 0;
  std::int32_t pid = 0;  ///< 0: unknown, in another pid namespace; negative: a file of MLLOG lines
  std::uint64_t start_time = 0;

  auto operator<=>(const SenderId&) const = default;
};

/// The sender as the kernel reports it: SCM_CREDENTIALS or SO_PEERCRED.
struct Credentials {
  std::int32_t pid = 0;  ///< in the daemon's pid namespace; 0 if not visible there
  std::uint32_t uid = 0;

  auto operator<=>(const Credentials&) const = default;
};

/// The workload that a process belongs to: the labels `kind` and `workload` of gpu_workload_info.
struct Workload {
  cgroup::Kind kind = cgroup::Kind::unattributed;  ///< unattributed: no workload is known
  std::string name;

  bool is_known() const noexcept { return kind != cgroup::Kind::unattributed; }
  bool operator==(const Workload&) const = default;
};

/// Facts about a process from the kernel in addition to its number, read at its first message.
struct SenderFacts {
  std::optional<Nanoseconds> began;  ///< start of the process, CLOCK_BOOTTIME; nullopt: unknown
  Workload workload;
  std::vector<std::int32_t> ancestors;  ///< parent, its parent and so on, without init
};

/// The sender of a message.
struct Sender {
  SenderId id;
  std::string_view user;  ///< the name of account(), or its digits
  const SenderFacts* facts =
      nullptr;  ///< nullptr: unknown, as for a file or a process in another pid namespace
  std::optional<std::uint32_t> owner = {};  ///< the user that owns the subordinate uid `id.uid`

  /// The uid that all limits, and the label `user`, are about.
  std::uint32_t account() const noexcept { return owner.value_or(id.uid); }
};

/// Returns whether the process (or file) still exists. The model's thread calls it, and never for pid 0. A
/// sender with pid 0 counts as gone when it has been silent for as long as runs are kept.
using IsAlive = std::function<bool(const SenderId&)>;

/// An instant on both clocks, read together. Durations use CLOCK_BOOTTIME, which does not jump when the
/// machine's time is set. Timestamps use CLOCK_REALTIME.
struct Moment {
  Nanoseconds elapsed{};  ///< CLOCK_BOOTTIME
  Nanoseconds unix{};     ///< CLOCK_REALTIME

  /// Converts a Unix time to an instant.
  Moment at(Nanoseconds unix_time) const noexcept { return {elapsed + (unix_time - unix), unix_time}; }
};

constexpr double seconds_between(const Moment& from, const Moment& to) noexcept {
  return to_seconds(to.elapsed - from.elapsed);
}

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
