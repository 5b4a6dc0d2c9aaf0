#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "collectors/attribution/device_use.hpp"
#include "collectors/jobs/model/run_list.hpp"
#include "collectors/jobs/wire/sender.hpp"
#include "exporter/store/series_list.hpp"

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

/// The processes on each device and their use of it.
using DeviceUses = std::vector<std::shared_ptr<const workloads::DeviceUse>>;

/// Computes each run's share of the GPUs: its energy, the time that it holds a GPU without using it, the time
/// that it loses because its GPUs are throttled, and the list of its GPUs. Joins by processes (RunOwners), so
/// the job need not report its GPUs. One thread.
class RunJoin {
 public:
  /// The owner calls ProcessKin::begin_pass() before each update().
  explicit RunJoin(ProcessKin& kin) : owners_(kin) {}

  /// Accounts for the use since the last call. Call about once a second.
  void update(const RunList& jobs, const DeviceUses& devices);

  /// Adds ml_energy_joules_total, ml_gpu_idle_allocated_seconds_total, ml_throttled_seconds_total,
  /// ml_clock_lost_seconds_total and ml_run_gpu_info for the runs that have or had a GPU.
  void write(SeriesList& out) const;

  /// The runs of the processes that were on a device at the last update. The caller may move them away.
  std::map<workloads::ProcessId, RunName> take_runs() { return std::exchange(runs_, {}); }

  /// The section of the state file: energy, idle time and lost time of each run.
  std::string saved() const;
  Result<Done> restore(std::string_view section);

 private:
  struct Gpu {
    unsigned index = 0;
    bool is_guess = true;  ///< rule 3 of RunOwners decided for all processes of the run on this GPU
  };
  struct Totals {
    std::optional<double> energy_joules;
    std::optional<double> idle_seconds;
    std::optional<double> clock_lost_seconds;
    std::map<std::string, double> throttled_seconds;  ///< by cause
    std::map<std::string, Gpu> gpus;                  ///< current GPUs, by uuid
  };
  struct Reading {
    double energy_joules = 0;
    double busy_seconds = 0;
  };
  /// Busy times are from the last list of processes; energy is read more often.
  struct DeviceReading {
    std::optional<Nanoseconds> listed_at;  ///< nullopt: the device was not read at the last update
    double busy_seconds = 0;
    std::optional<double> clock_lost_seconds;
    std::map<std::string, double> throttled;  ///< seconds by cause
    std::map<workloads::ProcessId, Reading> processes;
  };
  /// A run's processes on one device since the last reading.
  struct Part {
    std::optional<double> busy_seconds = 0;  ///< nullopt: unknown for one of the processes
    std::size_t present = 0;
  };

  void note_gaps(const DeviceUses& devices);
  void account(const workloads::DeviceUse& device);
  std::set<RunName> proven_on(const workloads::DeviceUse& device);
  void note_gpu(const workloads::DeviceUse& device, const RunName& run, bool is_guess);
  void take_energy(const workloads::DeviceUse& device, const std::vector<RunName>& runs, double joules);
  void take_idle(const workloads::DeviceUse& device, const std::map<RunName, Part>& parts,
                 const DeviceReading& last);
  void take_throttled(const workloads::DeviceUse& device, const std::map<RunName, Part>& parts,
                      const DeviceReading& last);
  void forget(const RunList& jobs);

  RunOwners owners_;
  std::map<std::string, DeviceReading, std::less<>> readings_;  ///< by uuid
  std::map<RunName, Totals> totals_;
  std::map<workloads::ProcessId, RunName> runs_;  ///< of the last update
};

}  // namespace gpumeter::jobs
