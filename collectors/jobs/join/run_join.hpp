#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "collectors/attribution/device_use.hpp"
#include "collectors/jobs/intake/process_kin.hpp"
#include "collectors/jobs/join/run_owners.hpp"
#include "collectors/jobs/model/job_series.hpp"
#include "exporter/store/series_list.hpp"

namespace gpumeter::jobs {

/// What of the GPUs is the runs': their energy, the time that they hold a GPU without using it, and which
/// GPUs they have. Joined by processes (RunOwners), so that nothing a job claims is needed. One thread.
class RunJoin {
 public:
  using DeviceUses = std::span<const std::shared_ptr<const workloads::DeviceUse>>;

  /// `procfs`: /proc, or a copy of it in tests.
  explicit RunJoin(std::string procfs) : kin_(std::move(procfs)), owners_(kin_) {}

  /// Accounts for what was used since the call before. Once a second or so.
  void update(const JobSnapshot& jobs, DeviceUses devices, Nanoseconds now);

  /// ml_energy_joules_total, ml_gpu_idle_allocated_seconds_total and ml_run_gpu_info of the runs that have or
  /// had a GPU.
  void write(SeriesList& out) const;

 private:
  struct Gpu {
    unsigned index = 0;
    bool is_guess = true;  ///< all of the run's processes on it are guessed (rule 4 of RunOwners)
  };
  struct Totals {
    std::optional<double> energy_joules;
    std::optional<double> idle_seconds;
    std::map<std::string, Gpu> gpus;  ///< now; by uuid
  };
  struct Reading {
    double energy_joules = 0;
    double busy_seconds = 0;
  };
  /// Busy times are those of the last list, which is made less often than energy is read.
  struct DeviceReading {
    std::optional<Nanoseconds> listed_at;  ///< nullopt: the device was not read since
    double busy_seconds = 0;
    std::map<workloads::ProcessId, Reading> processes;
  };
  /// A run's processes on one device since the last reading.
  struct Part {
    std::optional<double> busy_seconds = 0;  ///< nullopt: of one of them it is not known
    std::size_t present = 0;
  };

  void note_gaps(DeviceUses devices);
  void account(const workloads::DeviceUse& device);
  void note_gpu(const workloads::DeviceUse& device, const RunName& run, bool is_guess);
  void take_energy(const workloads::DeviceUse& device, const std::vector<RunName>& runs, double joules);
  void take_idle(const workloads::DeviceUse& device, const std::map<RunName, Part>& parts,
                 const DeviceReading& last);
  void forget(const JobSnapshot& jobs);

  ProcessKin kin_;
  RunOwners owners_;
  std::map<std::string, DeviceReading, std::less<>> readings_;  ///< by uuid
  std::map<RunName, Totals> totals_;
};

}  // namespace gpumeter::jobs
