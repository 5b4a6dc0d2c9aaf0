#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "collectors/attribution/device_use.hpp"
#include "collectors/jobs/intake/process_kin.hpp"
#include "collectors/jobs/join/run_join.hpp"
#include "collectors/sources/tcp/listeners.hpp"
#include "programs/servers/settings.hpp"

namespace gpumeter::servers {

/// A listening socket that may be the metrics page of a model server, and the processes that it stands for.
struct Place {
  std::string address;  ///< "127.0.0.1", "::1"
  std::uint16_t port = 0;
  int pid = 0;        ///< of the listener; 0: the kernel hides it, and only its cgroup is known
  std::string group;  ///< the cgroup of the listener
};

/// Finds the listening sockets of the processes that use a GPU, and of those that belong to them: their
/// ancestors, and the members of the same workload (unit, container, pod, Slurm job).
///
/// A socket's process is known by /proc/PID/fd, which needs the right to inspect the process. Without it, the
/// cgroup of the socket decides: it must be that of a process on a GPU, and of the same user. One thread; the
/// owner calls ProcessKin::begin_pass() before each find().
class Finder {
 public:
  struct Roots {
    std::string procfs = "/proc";
    std::string cgroups = "/sys/fs/cgroup";
  };
  using Listeners = std::function<Result<std::vector<tcp::Listener>>(const std::string& procfs)>;

  /// Looks for the settings' ports and processes.
  Finder(Settings settings, Roots roots, jobs::ProcessKin& kin, Listeners listeners = tcp::listeners)
      : settings_(std::move(settings)),
        roots_(std::move(roots)),
        kin_(kin),
        listeners_(std::move(listeners)) {}

  /// One place for each port, by port.
  Result<std::vector<Place>> find(const jobs::DeviceUses& devices);

 private:
  struct Candidates {
    std::set<int> pids;  ///< GPU processes and their ancestors
    std::map<std::string, std::set<std::uint32_t>, std::less<>>
        groups;  ///< of GPU processes, and their users
  };
  Candidates candidates(const jobs::DeviceUses& devices);
  void add_members(const std::string& group, std::set<int>& pids) const;
  int holder_of(const tcp::Listener& listener, const std::set<int>& pids);
  std::string group_of(const tcp::Listener& listener, const Candidates& candidates) const;
  bool is_asked(std::uint16_t port) const;
  bool is_wanted(int pid) const;
  bool has_wanted(const std::string& group, const Candidates& candidates);

  const Settings settings_;
  const Roots roots_;
  jobs::ProcessKin& kin_;
  const Listeners listeners_;
};

/// The names by which a process is wanted: its own (/proc/PID/comm), and the last components of the first
/// words of its command line: `vllm` in "python3 /usr/bin/vllm serve".
std::set<std::string> names_of(const std::string& procfs, int pid);

}  // namespace gpumeter::servers
