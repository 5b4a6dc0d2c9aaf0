#pragma once

#include <set>
#include <string>

#include "base/mutex.hpp"

namespace gpumeter {

/// The calls that were left behind because they hang, by key. The daemon owns one ledger for all its
/// collectors. A collector that is opened again therefore makes no second call where an earlier one still
/// hangs. Any thread.
class HangingCalls {
 public:
  void add(const std::string& key) GPUMETER_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    keys_.insert(key);
  }
  void remove(const std::string& key) GPUMETER_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    keys_.erase(key);
  }
  bool contains(const std::string& key) const GPUMETER_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return keys_.contains(key);
  }

 private:
  mutable Mutex mutex_;
  std::set<std::string> keys_ GPUMETER_GUARDED_BY(mutex_);
};

}  // namespace gpumeter
