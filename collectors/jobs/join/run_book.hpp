#pragma once

#include <map>
#include <optional>
#include <utility>

#include "base/mutex.hpp"
#include "collectors/attribution/device_use.hpp"
#include "collectors/jobs/model/run_list.hpp"

namespace gpumeter::jobs {

/// The run that each process on a GPU works for, as RunOwners decided last. Any thread.
class RunBook {
 public:
  using Runs = std::map<workloads::ProcessId, RunName>;

  void publish(Runs runs) GPUMETER_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    runs_ = std::move(runs);
  }
  /// Returns the first run of a process that reports several; nullopt: no job reports the process's run.
  std::optional<RunName> of(const workloads::ProcessId& process) const GPUMETER_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    const auto found = runs_.find(process);
    return found == runs_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  mutable Mutex mutex_;
  Runs runs_ GPUMETER_GUARDED_BY(mutex_);
};

}  // namespace gpumeter::jobs
