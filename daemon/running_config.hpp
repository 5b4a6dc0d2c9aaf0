#pragma once

#include <memory>
#include <utility>

#include "base/mutex.hpp"
#include "config/config.hpp"

namespace gpumeter {

/// The configuration in force. Any thread.
class RunningConfig {
 public:
  explicit RunningConfig(config::Config config) { replace(std::move(config)); }

  std::shared_ptr<const config::Config> get() const GPUMETER_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return config_;
  }

  /// Returns the previous configuration.
  std::shared_ptr<const config::Config> replace(config::Config wanted) GPUMETER_EXCLUDES(mutex_) {
    auto config = std::make_shared<const config::Config>(std::move(wanted));
    const MutexLock lock(mutex_);
    return std::exchange(config_, std::move(config));
  }

 private:
  mutable Mutex mutex_;
  std::shared_ptr<const config::Config> config_ GPUMETER_GUARDED_BY(mutex_);
};

}  // namespace gpumeter
