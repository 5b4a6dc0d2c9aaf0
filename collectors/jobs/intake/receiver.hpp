#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.hpp"
#include "base/descriptor.hpp"
#include "base/mutex.hpp"
#include "base/users.hpp"
#include "base/worker.hpp"
#include "collectors/jobs/intake/gate.hpp"
#include "collectors/jobs/model/user.hpp"

namespace gpumeter::jobs {

/// One message from the queue, with the sender and time that the kernel attached.
struct Datagram {
  std::string_view payload;
  Credentials from;
  Nanoseconds sent{};  ///< CLOCK_REALTIME
  bool cut = false;    ///< longer than the buffer: `payload` is incomplete
};

/// Reads a datagram socket with SO_PASSCRED and SO_TIMESTAMPNS in batches. Reserves 4 MiB of address space,
/// but uses memory only as far as messages fill it. One thread.
class Datagrams {
 public:
  /// A larger batch is not cheaper per message (measured; reference: recvmmsg(64) keeps up with 800k/s).
  static constexpr std::size_t kBatch = 64;

  Datagrams();
  ~Datagrams();
  Datagrams(const Datagrams&) = delete;
  Datagrams& operator=(const Datagrams&) = delete;

  /// Reads at most one batch without waiting, and returns its size. A datagram is valid during its `take`.
  std::size_t read(int descriptor, const std::function<void(const Datagram&)>& take);

 private:
  struct Batch;
  const std::unique_ptr<Batch> batch_;
};

/// Messages in the order of their arrival, and the number of lines that were rejected between them.
class Letters {
 public:
  bool empty() const noexcept { return heads_.empty() && over_rate_ == 0; }
  bool has_messages() const noexcept { return !heads_.empty(); }
  /// Memory that the messages need.
  std::size_t size() const noexcept { return bytes_.size() + heads_.size() * sizeof(Head); }
  void add(const Datagram& datagram);
  /// Adds all that `later` has, and empties it.
  void append(Letters& later);
  void add_over_rate(std::uint64_t lines) noexcept { over_rate_ += lines; }
  std::uint64_t over_rate() const noexcept { return over_rate_; }

  /// A datagram is valid during its `take`.
  template <class Take>
  void for_each(Take take) const {
    std::size_t at = 0;
    for (const Head& head : heads_) {
      take(Datagram{{bytes_.data() + at, head.size}, head.from, head.sent, head.cut});
      at += head.size;
    }
  }
  /// Returns large memory to the system.
  void clear();

 private:
  struct Head {
    Credentials from;
    Nanoseconds sent;
    std::uint32_t size;
    bool cut;
  };
  std::vector<char> bytes_;
  std::vector<Head> heads_;
  std::uint64_t over_rate_ = 0;
};

/// Messages on their way from the thread that receives them to the thread "jobs". Any thread.
class Inbox {
 public:
  /// Above this the receiving thread waits. One delivery of it may exceed it.
  static constexpr std::size_t kRoom = std::size_t{2} << 20;

  /// Moves all messages of `letters` here. Returns true if the reader must be woken: there are messages, and
  /// none was waiting before.
  bool put(Letters& letters) GPUMETER_EXCLUDES(mutex_);
  /// Waits until there is room, for `at_most` this long. Returns false if there is none.
  bool wait_for_room(Nanoseconds at_most) GPUMETER_EXCLUDES(mutex_);
  /// Moves all messages to `letters`, which must be empty.
  void take(Letters& letters) GPUMETER_EXCLUDES(mutex_);

 private:
  Mutex mutex_;
  Condition taken_;
  Letters waiting_ GPUMETER_GUARDED_BY(mutex_);
};

/// The lines of a datagram, unparsed.
std::uint64_t count_lines(std::string_view payload) noexcept;

/// How many lines of datagrams each user may send: a first limit, before a line is parsed. It rejects a flood
/// at the cost of one lookup. Twice as generous as jobs.limits.lines_per_second, so that it rejects nothing
/// that the exact limit of the model (User::take_lines) would accept. One thread.
class Allowance {
 public:
  /// Users that are remembered. Users beyond it share one allowance; see tick().
  static constexpr std::size_t kMostUsers = 4096;

  Allowance(double lines_per_second, Nanoseconds now)
      : rate_(2 * lines_per_second), rest_(rate_, rate_, now) {}

  void set_rate(double lines_per_second) noexcept;
  /// Returns 0 if the user may send this payload, otherwise the number of its lines.
  std::uint64_t refuse(std::uint32_t user, std::string_view payload, Nanoseconds now);
  /// Forgets users that have their whole allowance. Call about once a second.
  void tick(Nanoseconds now);
  std::size_t users() const noexcept { return users_.size(); }

 private:
  TokenBucket& bucket_of(std::uint32_t user, Nanoseconds now);

  double rate_;
  TokenBucket rest_;
  std::unordered_map<std::uint32_t, TokenBucket> users_;
};

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
