#pragma once

#include <utility>

#include "base/mutex.hpp"
#include "config/config.hpp"

namespace gpumeter {

/// The configuration in force. Any thread.
class RunningConfig {
 public:
  explicit RunningConfig(config::Config config) : config_(std::move(config)) {}

  config::Config get() const GPUMETER_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return config_;
  }

  /// Returns the one before.
  config::Config replace(config::Config wanted) GPUMETER_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return std::exchange(config_, std::move(wanted));
  }

 private:
  mutable Mutex mutex_;
  config::Config config_ GPUMETER_GUARDED_BY(mutex_);
};

}  // namespace gpumeter
