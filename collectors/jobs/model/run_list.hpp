#pragma once

#include <compare>
#include <map>
#include <string>
#include <vector>

#include "collectors/attribution/device_use.hpp"
#include "collectors/jobs/wire/sender.hpp"

namespace gpumeter::jobs {

/// A run by its labels on the page.
struct RunName {
  std::string user;
  std::string run;

  auto operator<=>(const RunName&) const = default;
};

/// A live process of a run that has not sent run_stop. The join of runs with GPUs uses these. A process may
/// continue with its next run, as in a notebook.
struct RunProcess {
  SenderId id;
  RunName run;
};

/// The runs of a model at one moment, without `_other`.
struct RunList {
  std::vector<RunName> runs;
  std::vector<RunName> ended;  ///< those of `runs` that have ml_run_stop_timestamp_seconds
  std::vector<RunProcess> processes;
  /// The run that each process on a GPU works for, as RunOwners decided last; the first one of a process that
  /// reports several.
  std::map<workloads::ProcessId, RunName> on_devices;
};

}  // namespace gpumeter::jobs
