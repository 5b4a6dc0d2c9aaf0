#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "base/descriptor.hpp"
#include "base/mutex.hpp"
#include "base/user_owners.hpp"
#include "base/worker.hpp"
#include "collectors/jobs/intake/allowance.hpp"
#include "collectors/jobs/intake/datagrams.hpp"
#include "collectors/jobs/intake/inbox.hpp"

namespace gpumeter::jobs {

/// Empties the datagram socket as fast as the kernel delivers, on its own thread "jobs-receive". All users
/// share the socket's queue, and a sender that does not wait loses its message while the queue is full.
/// Nothing is parsed here: the thread rejects what exceeds a user's Allowance and copies the rest to an
/// Inbox.
///
/// Under load the thread saves the processor's time for the thread "jobs" and the senders. It hands messages
/// over every few milliseconds. If the queue is long, it also lets messages gather: then a sender wakes
/// nobody, and one system call reads many messages.
///
/// start(), stop() and the destructor: the owner's thread. set_rate(): any thread. The rest: the thread
/// "jobs".
class Receiver {
 public:
  /// `wake` is called on this object's thread when the first message waits. Both must outlive this object.
  Receiver(const Clock& clock, const UserOwners& owners, double lines_per_second, std::function<void()> wake);
  ~Receiver() { stop(); }
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  /// `descriptor`: the socket, which must outlive this object. An Error: the kernel provides no thread now.
  Result<Done> start(int descriptor);
  void stop();
  /// Reads what is left in the queue away, and returns how many lines it was. Call it after stop().
  std::uint64_t discard();
  void set_rate(double lines_per_second) noexcept { rate_ = lines_per_second; }

  /// See Inbox::take().
  void take(Letters& letters) { inbox_.take(letters); }
  /// Asks for the messages that are in the socket's queue now. Returns the number of the question.
  std::uint64_t ask();
  /// Waits until the messages of the question are in the inbox, for `at_most` this long.
  bool is_answered(std::uint64_t question, Nanoseconds at_most) GPUMETER_EXCLUDES(mutex_);

 private:
  void turn();
  void begin();
  void wait();
  std::size_t read();
  bool expects_more();
  void gather();
  void put(const Datagram& datagram);
  void hand_over();
  void answer(std::uint64_t question) GPUMETER_EXCLUDES(mutex_);

  const Clock& clock_;
  const UserOwners& owners_;
  const std::function<void()> wake_;
  Worker worker_{clock_};
  Descriptor stop_;  ///< eventfd
  Inbox inbox_;
  std::atomic<double> rate_;
  std::atomic<bool> is_stopping_ = false;
  std::atomic<std::uint64_t> asked_ = 0;
  bool is_running_ = false;  ///< used only by the owner after start()

  // Used by the thread only.
  int descriptor_ = -1;
  Datagrams datagrams_;
  Allowance allowance_;
  std::shared_ptr<const SubordinateUids> uids_;
  Nanoseconds now_{};
  Nanoseconds tick_at_{};
  Letters pending_;  ///< not yet in the inbox
  Nanoseconds handed_at_{};
  Nanoseconds last_sent_{};  ///< CLOCK_REALTIME of the last message that was read
  bool is_long_ = false;     ///< the queue has once held a whole batch
  std::size_t recent_ = 0;   ///< messages since the thread last waited, gathered or decided to poll
  Nanoseconds poll_until_{};
  Nanoseconds pause_{};

  Mutex mutex_;
  Condition answered_now_;
  std::uint64_t answered_ GPUMETER_GUARDED_BY(mutex_) = 0;
};

}  // namespace gpumeter::jobs
