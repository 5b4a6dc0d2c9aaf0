#pragma once

#include <cstddef>
#include <memory>
#include <set>

#include "base/clock.hpp"
#include "base/mutex.hpp"

namespace gpumeter {

/// Limits the number of lanes inside one driver. If calls past their deadlines hold all places, the library
/// counts as stuck: no other lane enters, and no new call is made. Any thread.
class DriverGate {
 public:
  /// `max_parallel` 0: no limit. `clock` must outlive the gate.
  DriverGate(int max_parallel, const Clock& clock)
      : clock_(clock), places_(static_cast<std::size_t>(max_parallel)) {}

  /// A place inside the driver, for one call. The gate must outlive the place.
  class Place {
   public:
    ~Place() { gate_.leave(deadline_); }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    /// Returns the time after which the call is late (CLOCK_MONOTONIC).
    Nanoseconds deadline() const noexcept { return deadline_; }

   private:
    friend DriverGate;
    Place(DriverGate& gate, Nanoseconds deadline) noexcept : gate_(gate), deadline_(deadline) {}
    DriverGate& gate_;
    const Nanoseconds deadline_;
  };

  /// Waits for a place. The deadline is `allowed` after the moment of entry: the wait does not count. Returns
  /// null if close() came first.
  std::unique_ptr<Place> enter(Nanoseconds allowed) GPUMETER_EXCLUDES(mutex_);

  /// True while calls past their deadlines hold all places.
  bool is_stuck() const GPUMETER_EXCLUDES(mutex_);

  /// Rejects all waiting and later callers: the collector stops.
  void close() GPUMETER_EXCLUDES(mutex_);

 private:
  void leave(Nanoseconds deadline) GPUMETER_EXCLUDES(mutex_);
  bool is_full() const GPUMETER_REQUIRES(mutex_) { return places_ > 0 && deadlines_.size() >= places_; }

  const Clock& clock_;
  const std::size_t places_;
  mutable Mutex mutex_;
  Condition changed_;
  std::multiset<Nanoseconds> deadlines_ GPUMETER_GUARDED_BY(mutex_);  // of the calls inside
  bool closed_ GPUMETER_GUARDED_BY(mutex_) = false;
};

}  // namespace gpumeter
