#pragma once

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
#include "collectors/jobs/intake/process_kin.hpp"
#include "collectors/jobs/join/run_book.hpp"
#include "collectors/jobs/join/run_owners.hpp"
#include "collectors/jobs/model/run_list.hpp"
#include "exporter/store/series_list.hpp"

namespace gpumeter::jobs {

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
  RunBook::Runs take_runs() { return std::exchange(runs_, {}); }

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
  RunBook::Runs runs_;  ///< of the last update
};

}  // namespace gpumeter::jobs
