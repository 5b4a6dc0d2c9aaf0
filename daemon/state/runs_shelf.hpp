#pragma once

#include <optional>
#include <utility>

#include "base/mutex.hpp"
#include "collectors/jobs/intake/ingest.hpp"

namespace gpumeter {

/// Passes the state of the runs between the thread "jobs" and the thread "state". Any thread.
class RunsShelf {
 public:
  void put(jobs::SavedRuns runs) GPUMETER_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    now_ = std::move(runs);
  }
  jobs::SavedRuns get() const GPUMETER_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return now_;
  }

  struct Earlier {
    jobs::SavedRuns runs;
    bool is_of_this_boot = false;
  };
  /// The runs of an earlier process. Those of this boot are the runs now until the thread "jobs" puts newer
  /// ones: a crash before that loses nothing.
  void put_earlier(Earlier runs) GPUMETER_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (runs.is_of_this_boot) now_ = runs.runs;
    earlier_ = std::move(runs);
  }
  std::optional<Earlier> take_earlier() GPUMETER_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return std::exchange(earlier_, std::nullopt);
  }

 private:
  mutable Mutex mutex_;
  jobs::SavedRuns now_ GPUMETER_GUARDED_BY(mutex_);
  std::optional<Earlier> earlier_ GPUMETER_GUARDED_BY(mutex_);
};

}  // namespace gpumeter
