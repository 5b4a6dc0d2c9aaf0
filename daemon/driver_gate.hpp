#pragma once

#include "collectors/api/mutex.hpp"

namespace gpumeter {

/// How many lanes may be inside one driver at a time. Where that many hang, nobody else gets in: the
/// library counts as stuck and no new call is made. Any thread.
class DriverGate {
 public:
  /// 0: no limit.
  explicit DriverGate(int max_parallel) : free_(max_parallel), limited_(max_parallel > 0) {}

  /// Waits for a place; false when close() came first.
  bool enter() GPUMETER_EXCLUDES(mutex_);
  void leave() GPUMETER_EXCLUDES(mutex_);

  /// Turns away all that wait and come: the collector stops.
  void close() GPUMETER_EXCLUDES(mutex_);

 private:
  Mutex mutex_;
  Condition changed_;
  int free_ GPUMETER_GUARDED_BY(mutex_);
  bool closed_ GPUMETER_GUARDED_BY(mutex_) = false;
  const bool limited_;
};

}  // namespace gpumeter
