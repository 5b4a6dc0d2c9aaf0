#pragma once

#include <signal.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "base/result.hpp"

namespace gpumeter {

/// Threads that start meanwhile have all signals blocked. The main thread reads signals from a signalfd,
/// which requires that all other threads block them.
class AllSignalsBlocked {
 public:
  AllSignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~AllSignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  AllSignalsBlocked(const AllSignalsBlocked&) = delete;
  AllSignalsBlocked& operator=(const AllSignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

/// A named thread that works in turns. A turn runs at the start, after the pause that the last turn returned,
/// and after wake(). A turn may hang in a driver, a file system or a name service. The owner waits for such a
/// thread only until a deadline and then leaves it behind. The thread frees what its functions own when the
/// call returns.
///
/// start(), join() and the destructor: the owner's thread. Everything else: any thread.
class Worker {
 public:
  /// Returns the pause until the next turn; nullopt ends the thread. If a turn throws (out of memory), the
  /// next one follows after 1 s. A turn must own all it touches, unless the owner joins the thread without a
  /// deadline or leaves the process by _exit().
  using Turn = std::function<std::optional<Nanoseconds>()>;

  static constexpr Nanoseconds kForever = Nanoseconds::max();

  /// `clock` must outlive the worker, and also the thread until request_stop().
  explicit Worker(const Clock& clock);
  /// Requests the thread's end and leaves the thread behind. The first turn runs in any case.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Starts the thread with all signals blocked. The kernel cuts `name` to 15 characters. The thread calls
  /// `end` after its last turn, and then destroys both functions. Returns an Error if the kernel refused a
  /// thread (pids.max, RLIMIT_NPROC); start() may then be called again.
  Result<Done> start(const std::string& name, Turn turn, std::function<void()> end = {});

  /// Starts the next turn now, or directly after the turn under way.
  void wake();

  /// Ends the thread after the turn under way, without waiting.
  void request_stop();
  bool is_stopping() const;

  /// Waits for the thread's end until `deadline` (CLOCK_MONOTONIC). Returns false if the thread hangs and was
  /// left behind.
  bool join(Nanoseconds deadline = kForever);
  bool stop(Nanoseconds deadline = kForever) {
    request_stop();
    return join(deadline);
  }

  /// True if no turn is under way and no wake() is pending, and also if the thread does not run.
  bool is_idle() const;
  /// Returns the start of the turn under way (CLOCK_MONOTONIC); nullopt between turns.
  std::optional<Nanoseconds> busy_since() const;
  bool is_busy_for(Nanoseconds time) const;
  /// Returns the end of the last turn that did not throw, or the start of the thread (CLOCK_MONOTONIC).
  Nanoseconds last_turn() const;

 private:
  struct State;
  static void run(State& state, const Turn& turn, const std::function<void()>& end);

  const Clock& clock_;
  const std::shared_ptr<State> state_;  ///< shared with the thread, which may outlive this object
  std::thread thread_;
};

/// A queue of messages to a worker, in order. Any thread.
template <class Message>
class Mailbox {
 public:
  void post(Message message) GPUMETER_EXCLUDES(mutex_) {
    post(std::move(message), [](const Message&) { return false; });
  }

  /// Drops the waiting messages for which `is_obsolete` is true, so that a hanging worker gathers no backlog.
  template <class IsObsolete>
  void post(Message message, IsObsolete is_obsolete) GPUMETER_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    std::erase_if(waiting_, is_obsolete);
    waiting_.push_back(std::move(message));
  }

  /// Returns all waiting messages, the oldest first.
  std::vector<Message> take() GPUMETER_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return std::exchange(waiting_, {});
  }

 private:
  Mutex mutex_;
  std::vector<Message> waiting_ GPUMETER_GUARDED_BY(mutex_);
};

}  // namespace gpumeter
