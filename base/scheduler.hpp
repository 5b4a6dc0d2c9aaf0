#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "base/result.hpp"

namespace gpumeter {

/// Runs periodic jobs on a few threads. The turns of one job never overlap; those of different jobs may. A
/// turn may hang in a file system, a name service or a socket: past its deadline the job is late, it alone
/// waits, and other jobs get another thread. Threads own what a turn owns, so a turn that never returns may
/// be left behind.
///
/// Pauses of a second and more end on a common grid of whole seconds of CLOCK_BOOTTIME, so that jobs share a
/// wake-up.
///
/// Any thread may call wake(). The owner's thread calls everything else; check() needs a thread that never
/// hangs.
class Scheduler {
 public:
  static constexpr Nanoseconds kForever = Nanoseconds::max();
  /// Most periods of a part are a second: a thread rarely finds two jobs at once.
  static constexpr std::size_t kThreads = 2;
  /// More late turns than this mean that the system as a whole hangs; further jobs then wait.
  static constexpr std::size_t kMostThreads = 16;

  struct Job {
    std::string name;
    Nanoseconds deadline;  ///< of one turn
    /// Returns the pause until the next turn. Owns all that it touches, unless the process ends by _exit()
    /// when stop() returns false. If it throws (out of memory), the next turn follows after 1 s.
    std::function<Nanoseconds()> turn;
    /// Called from check() with true when a turn is past its deadline, and with false when it has returned,
    /// but not after remove().
    std::function<void(bool is_late)> late = [](bool) {};
  };
  using Id = std::size_t;

  /// `clock` must outlive the scheduler, and its threads until stop().
  explicit Scheduler(const Clock& clock);
  /// Leaves turns behind that do not return.
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  /// Returns an Error if the kernel refused a thread.
  Result<Done> start();

  /// The first turn runs after `first`; before start(), with start(). kForever: when the job is woken.
  Id add(Job job, Nanoseconds first = Nanoseconds{0});
  /// Runs the next turn now, or directly after the turn under way. Several calls become one turn.
  void wake(Id job);
  /// No turn begins any more. Returns false if the turn under way did not end until `deadline`
  /// (CLOCK_MONOTONIC).
  bool remove(Id job, Nanoseconds deadline);

  /// Reports late turns and those that came back, and starts a thread for jobs that are due while all threads
  /// work. Called a few times a second.
  void check();
  /// The number of threads now, for tests.
  std::size_t threads() const;

  /// No turn begins any more. Returns false if a turn under way did not end until `deadline`
  /// (CLOCK_MONOTONIC).
  bool stop(Nanoseconds deadline);

 private:
  struct State;
  const std::shared_ptr<State> state_;  ///< shared with the threads, which may outlive this object
};

/// A job that others wake, also before it has been added. Any thread may call wake().
class Wakeable {
 public:
  /// Adds the job, which must not have been added yet. The scheduler must outlive the calls of wake().
  void add_to(Scheduler& scheduler, Scheduler::Job job, Nanoseconds first = Nanoseconds{0})
      GPUMETER_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    scheduler_ = &scheduler;
    id_ = scheduler.add(std::move(job), first);
  }
  void wake() GPUMETER_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (scheduler_ != nullptr) scheduler_->wake(id_);
  }
  /// As Scheduler::remove().
  bool remove(Nanoseconds deadline) GPUMETER_EXCLUDES(mutex_) {
    mutex_.lock();
    Scheduler* const scheduler = std::exchange(scheduler_, nullptr);
    const Scheduler::Id id = id_;
    mutex_.unlock();
    return scheduler == nullptr || scheduler->remove(id, deadline);
  }

 private:
  Mutex mutex_;
  Scheduler* scheduler_ GPUMETER_GUARDED_BY(mutex_) = nullptr;
  Scheduler::Id id_ GPUMETER_GUARDED_BY(mutex_) = 0;
};

}  // namespace gpumeter
