#pragma once

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

/// A named thread that works in turns: at its start, then after the pause that the last turn asked for, and
/// when somebody wakes it. A turn may hang in a driver, a file system or a name service. Nobody waits for
/// such a thread beyond a deadline; it is left behind, and frees what its functions own when the call
/// returns.
///
/// start(), join() and the destructor: the owner's thread. Everything else: any thread.
class Worker {
 public:
  /// Returns the pause until the next turn; nullopt ends the thread. If a turn throws (out of memory), the
  /// next one follows after a second. Must own all it touches, unless the owner joins the thread without a
  /// deadline or leaves the process by _exit().
  using Turn = std::function<std::optional<Nanoseconds>()>;

  static constexpr Nanoseconds kForever = Nanoseconds::max();

  /// `clock` must outlive the worker, and the thread until request_stop().
  explicit Worker(const Clock& clock);
  /// Asks the thread to end and leaves it behind. The first turn is made in any case.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Starts the thread with all signals blocked. The kernel cuts `name` to 15 characters. The thread calls
  /// `end` after its last turn, and then destroys both functions. An Error: the kernel gave no thread
  /// (pids.max, RLIMIT_NPROC), and start() may be called again.
  Result<Done> start(const std::string& name, Turn turn, std::function<void()> end = {});

  /// Makes the next turn come now, or again after the turn under way.
  void wake();

  /// Ends the thread after the turn under way; does not wait.
  void request_stop();
  bool is_stopping() const;

  /// Waits for the thread's end until `deadline` (CLOCK_MONOTONIC). False: it hangs and was left behind.
  bool join(Nanoseconds deadline = kForever);
  bool stop(Nanoseconds deadline = kForever) {
    request_stop();
    return join(deadline);
  }

  /// True while no turn is under way and none was asked for by wake(); also of a thread that does not run.
  bool is_idle() const;
  /// When the turn under way began (CLOCK_MONOTONIC); nullopt between turns.
  std::optional<Nanoseconds> busy_since() const;
  bool is_busy_for(Nanoseconds time) const;

 private:
  struct State;
  static void run(State& state, const Turn& turn, const std::function<void()>& end);

  const Clock& clock_;
  const std::shared_ptr<State> state_;  ///< the thread's too, which may outlive this object
  std::thread thread_;
};

/// Messages to a worker, in order. Any thread.
template <class Message>
class Mailbox {
 public:
  void post(Message message) GPUMETER_EXCLUDES(mutex_) {
    post(std::move(message), [](const Message&) { return false; });
  }

  /// Drops the waiting messages for which `is_obsolete` is true, so that a worker that hangs finds no
  /// backlog.
  template <class IsObsolete>
  void post(Message message, IsObsolete is_obsolete) GPUMETER_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    std::erase_if(waiting_, is_obsolete);
    waiting_.push_back(std::move(message));
  }

  /// All that is waiting, the oldest first.
  std::vector<Message> take() GPUMETER_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return std::exchange(waiting_, {});
  }

 private:
  Mutex mutex_;
  std::vector<Message> waiting_ GPUMETER_GUARDED_BY(mutex_);
};

}  // namespace gpumeter
