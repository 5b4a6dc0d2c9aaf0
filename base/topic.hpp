#pragma once

#include <memory>
#include <utility>

#include "base/mutex.hpp"

namespace gpumeter {

/// The last snapshot of what one part publishes and others read: immutable, and replaced as a whole. Never
/// null: a topic that nobody publishes is empty. Any thread.
template <class T>
class Topic {
 public:
  std::shared_ptr<const T> get() const GPUMETER_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return now_;
  }
  void publish(T value) GPUMETER_EXCLUDES(mutex_) {
    auto next = std::make_shared<const T>(std::move(value));
    const MutexLock lock(mutex_);
    now_.swap(next);
  }

 private:
  mutable Mutex mutex_;
  std::shared_ptr<const T> now_ GPUMETER_GUARDED_BY(mutex_) = std::make_shared<const T>();
};

}  // namespace gpumeter
