#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "collectors/attribution/device_use.hpp"
#include "collectors/jobs/intake/process_kin.hpp"
#include "collectors/jobs/join/run_join.hpp"

namespace gpumeter::servers {

/// A model server as the energy is divided: the process that listens, and its cgroup.
struct Holder {
  std::string name;   ///< unique; the server's place
  int pid = 0;        ///< 0: unknown
  std::string group;  ///< empty: unknown
};

/// The GPUs of each server and the energy that its processes used there. A process on a GPU belongs to the
/// server that is the process itself or its nearest ancestor; otherwise to the only server of its workload
/// (unit, container, pod, Slurm job), because a launcher may start the router and the workers side by side. A
/// login session is no such workload. One thread; the owner calls ProcessKin::begin_pass() before update().
class ServerEnergy {
 public:
  struct Gpu {
    std::string uuid;
    unsigned index = 0;
  };
  struct Account {
    std::optional<double> joules;  ///< grows; nullopt: none of its GPUs has an energy counter
    std::vector<Gpu> gpus;         ///< at present, by index
  };

  explicit ServerEnergy(jobs::ProcessKin& kin) : kin_(kin) {}

  /// Accounts for the energy since the last call. The account of a server that is not in `holders` ends.
  void update(const std::vector<Holder>& holders, const jobs::DeviceUses& devices);

  const Account& of(const std::string& name) const;

 private:
  struct Process {
    std::string owner;
    double joules = 0;
    bool is_seen = false;
  };
  struct OnDevice {
    std::string uuid;
    workloads::ProcessId id;
    auto operator<=>(const OnDevice&) const = default;
  };

  std::string owner_of(const workloads::ProcessUse& use, const std::vector<Holder>& holders);
  void take(const workloads::DeviceUse& device, const workloads::ProcessUse& use,
            const std::vector<Holder>& holders);

  jobs::ProcessKin& kin_;
  std::map<std::string, Account> accounts_;
  std::map<OnDevice, Process> processes_;
};

}  // namespace gpumeter::servers
