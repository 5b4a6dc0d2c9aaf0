#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "base/result.hpp"

namespace gpumeter {

/// A thread that may hang in a driver and is then left behind. Its body must own all it touches (by
/// shared_ptr), since it may outlive everybody else. start() and join() from one thread.
class AbandonableThread {
 public:
  AbandonableThread() = default;
  ~AbandonableThread() {
    if (thread_.joinable()) thread_.detach();
  }
  AbandonableThread(const AbandonableThread&) = delete;
  AbandonableThread& operator=(const AbandonableThread&) = delete;

  /// `name` is cut to the kernel's 15 characters. `body` must not throw. An Error: the kernel gave no thread
  /// (pids.max, RLIMIT_NPROC), nothing was started, and start() may be called again.
  Result<Done> start(const std::string& name, std::function<void()> body);

  /// Waits for the end until `deadline` (monotonic). False: it hangs, and nobody waits for it any more.
  bool join(const Clock& clock, Nanoseconds deadline);

 private:
  struct End {
    Mutex mutex;
    Condition changed;
    bool reached GPUMETER_GUARDED_BY(mutex) = false;
  };
  const std::shared_ptr<End> end_ = std::make_shared<End>();
  std::thread thread_;
};

}  // namespace gpumeter
