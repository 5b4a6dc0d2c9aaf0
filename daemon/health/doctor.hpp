#pragma once

#include <functional>
#include <memory>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "base/result.hpp"
#include "base/worker.hpp"
#include "daemon/log/log.hpp"
#include "exporter/health/judge.hpp"
#include "exporter/store/series_list.hpp"
#include "exporter/store/store.hpp"

namespace gpumeter {

/// Judges the devices once a second on its own thread "health", publishes gpu_health and gpu_health_reason,
/// and logs each reason when it begins and when it ends. It reads the store only, so it never waits for a
/// driver or the system.
class Doctor {
 public:
  /// All must outlive this object. `book` has the events of an earlier process before the first judgement.
  Doctor(Store& store, const Clock& clock, Log& log, std::shared_ptr<health::EventBook> book);
  /// Waits for the turn under way.
  ~Doctor() { stop(); }
  Doctor(const Doctor&) = delete;
  Doctor& operator=(const Doctor&) = delete;

  /// Starts the thread. It judges from the time on when `may_begin`, which it calls, returns true. Returns an
  /// Error if the kernel refused the thread.
  Result<Done> start(std::function<bool()> may_begin);
  /// Ends the thread. Its series stay as they are.
  void stop() { worker_.stop(); }

  /// Judges again at once, on the thread.
  void wake() { worker_.wake(); }

  /// Judges now. On the thread; in tests instead of the thread.
  void judge() GPUMETER_EXCLUDES(mutex_);

  /// The last judgement; empty before the first. Any thread.
  std::shared_ptr<const health::Report> report() const GPUMETER_EXCLUDES(mutex_);

 private:
  void publish(const health::Report& report);

  const Store& store_;
  const Clock& clock_;
  Log& log_;
  const std::shared_ptr<health::EventBook> book_;
  health::Judge judge_;       // of the thread
  SeriesList series_;         // of the thread
  bool has_begun_ = false;    // of the thread
  bool has_resumed_ = false;  // of the thread
  mutable Mutex mutex_;
  std::shared_ptr<const health::Report> report_ GPUMETER_GUARDED_BY(mutex_);
  Worker worker_;
};

}  // namespace gpumeter
