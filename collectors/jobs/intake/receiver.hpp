#pragma once

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <functional>
#include <memory>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/descriptor.hpp"
#include "base/mutex.hpp"
#include "base/users.hpp"
#include "base/worker.hpp"
#include "collectors/jobs/model/run_model.hpp"
#include "collectors/jobs/wire/line.hpp"
#include "collectors/jobs/wire/sender.hpp"

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

  Datagrams() = default;
  Datagrams(const Datagrams&) = delete;
  Datagrams& operator=(const Datagrams&) = delete;

  /// Reads at most one batch without waiting, and returns its size. A datagram is valid during its `take`.
  std::size_t read(int descriptor, const std::function<void(const Datagram&)>& take) {
    const int count =
        recvmmsg(descriptor, batch_->messages.data(), kBatch, MSG_DONTWAIT | MSG_CMSG_CLOEXEC, nullptr);
    const auto received = static_cast<std::size_t>(std::max(count, 0));
    for (std::size_t i = 0; i < received; ++i) {
      mmsghdr& message = batch_->messages[i];
      Datagram datagram;
      read_control(message.msg_hdr, datagram);
      datagram.payload = {static_cast<const char*>(batch_->parts[i].iov_base), message.msg_len};
      datagram.cut = (message.msg_hdr.msg_flags & MSG_TRUNC) != 0;
      message.msg_hdr.msg_controllen = kControl;  // the only field that the kernel reads and writes
      take(datagram);
    }
    return received;
  }

 private:
  /// A cache line more than a message has, because at a distance of 64 KiB the starts of all messages would
  /// share one set of the processor's cache.
  static constexpr std::size_t kStride = kMaxPayload + 64;
  /// Room for exactly the time and the credentials, which the kernel puts first. Descriptors that a client
  /// sends along then do not fit, and the kernel closes them.
  static constexpr std::size_t kControl = CMSG_SPACE(sizeof(timespec)) + CMSG_SPACE(sizeof(ucred));

  /// Closes sent descriptors if a kernel delivers them nevertheless.
  static void close_all(const cmsghdr& part) {
    const std::size_t count = (part.cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(&part) + i * sizeof descriptor, sizeof descriptor);
      close(descriptor);
    }
  }
  static void read_control(msghdr& header, Datagram& datagram) {
    for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
      if (part->cmsg_level != SOL_SOCKET) continue;
      if (part->cmsg_type == SCM_CREDENTIALS) {
        ucred from{};
        std::memcpy(&from, CMSG_DATA(part), sizeof from);
        datagram.from = {from.pid, from.uid};
      } else if (part->cmsg_type == SCM_TIMESTAMPNS) {
        timespec sent{};
        std::memcpy(&sent, CMSG_DATA(part), sizeof sent);
        datagram.sent = std::chrono::seconds(sent.tv_sec) + Nanoseconds(sent.tv_nsec);
      } else if (part->cmsg_type == SCM_RIGHTS) {
        close_all(*part);
      }
    }
  }

  struct Batch {
    std::array<mmsghdr, kBatch> messages{};
    std::array<iovec, kBatch> parts{};
    struct alignas(cmsghdr) Control {
      std::array<char, kControl> bytes;
    };
    std::array<Control, kBatch> controls{};
    const std::unique_ptr<char[]> bytes{new char[kBatch * kStride]};  // not zeroed: see the header

    Batch() {
      for (std::size_t i = 0; i < kBatch; ++i) {
        parts[i] = {bytes.get() + i * kStride, kMaxPayload};
        msghdr& header = messages[i].msg_hdr;
        header.msg_iov = &parts[i];
        header.msg_iovlen = 1;
        header.msg_control = controls[i].bytes.data();
        header.msg_controllen = kControl;
      }
    }
  };
  const std::unique_ptr<Batch> batch_ = std::make_unique<Batch>();
};

/// Messages in the order of their arrival, and the number of lines that were rejected between them.
class Letters {
 public:
  bool empty() const noexcept { return heads_.empty() && over_rate_ == 0; }
  bool has_messages() const noexcept { return !heads_.empty(); }
  /// Memory that the messages need.
  std::size_t size() const noexcept { return bytes_.size() + heads_.size() * sizeof(Head); }
  /// The payload of a datagram that was cut is of no use.
  void add(const Datagram& datagram) {
    const std::string_view payload = datagram.cut ? std::string_view() : datagram.payload;
    bytes_.insert(bytes_.end(), payload.begin(), payload.end());
    heads_.push_back(
        {datagram.from, datagram.sent, static_cast<std::uint32_t>(payload.size()), datagram.cut});
  }
  /// Adds all that `later` has, and empties it.
  void append(Letters& later) {
    if (empty()) return std::swap(*this, later);
    bytes_.insert(bytes_.end(), later.bytes_.begin(), later.bytes_.end());
    heads_.insert(heads_.end(), later.heads_.begin(), later.heads_.end());
    over_rate_ += later.over_rate_;
    later.clear();
  }
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
  void clear() {
    clear_vector(bytes_);
    clear_vector(heads_);
    over_rate_ = 0;
  }

 private:
  /// Memory that is kept for the next messages: more than all jobs of a machine send between two turns.
  static constexpr std::size_t kKept = 65'536;
  template <class Element>
  static void clear_vector(std::vector<Element>& vector) {
    if (vector.capacity() * sizeof(Element) > kKept) {
      vector = {};
    } else {
      vector.clear();
    }
  }

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
  bool put(Letters& letters) GPUMETER_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    const bool had_messages = waiting_.has_messages();
    waiting_.append(letters);
    return waiting_.has_messages() && !had_messages;
  }
  /// Waits until there is room, for `at_most` this long. Returns false if there is none.
  bool wait_for_room(Nanoseconds at_most) GPUMETER_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (waiting_.size() >= kRoom) taken_.wait_for(mutex_, at_most);
    return waiting_.size() < kRoom;
  }
  /// Moves all messages to `letters`, which must be empty.
  void take(Letters& letters) GPUMETER_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    std::swap(waiting_, letters);
    taken_.notify_all();
  }

 private:
  Mutex mutex_;
  Condition taken_;
  Letters waiting_ GPUMETER_GUARDED_BY(mutex_);
};

/// The lines of a datagram, unparsed.
inline std::uint64_t count_lines(std::string_view payload) noexcept {
  const auto ends = static_cast<std::uint64_t>(std::ranges::count(payload, '\n'));
  return ends + (payload.ends_with('\n') ? 0 : 1);
}

/// How many lines of datagrams each user may send: a first limit, before a line is parsed. It rejects a flood
/// at the cost of one lookup. Twice as generous as jobs.limits.lines_per_second, so that it rejects nothing
/// that the exact limit of the model (User::take_lines) would accept. One thread.
class Allowance {
 public:
  /// Users that are remembered. Users beyond it share one allowance; see tick().
  static constexpr std::size_t kMostUsers = 4096;

  Allowance(double lines_per_second, Nanoseconds now)
      : rate_(2 * lines_per_second), rest_(rate_, rate_, now) {}

  void set_rate(double lines_per_second) noexcept {
    rate_ = 2 * lines_per_second;
    rest_.set(rate_, rate_);
    for (auto& [user, bucket] : users_) bucket.set(rate_, rate_);
  }
  /// Returns 0 if the user may send this payload, otherwise the number of its lines.
  std::uint64_t refuse(std::uint32_t user, std::string_view payload, Nanoseconds now) {
    const std::uint64_t lines = count_lines(payload);
    return bucket_of(user, now).take(now, static_cast<double>(lines)) ? 0 : lines;
  }
  /// Forgets users that have their whole allowance. Call about once a second.
  void tick(Nanoseconds now) {
    std::erase_if(users_, [&](const auto& entry) { return entry.second.is_full(now); });
  }
  std::size_t users() const noexcept { return users_.size(); }

 private:
  TokenBucket& bucket_of(std::uint32_t user, Nanoseconds now) {
    const auto found = users_.find(user);
    if (found != users_.end()) return found->second;
    if (users_.size() >= kMostUsers) return rest_;
    return users_.try_emplace(user, rate_, rate_, now).first->second;
  }

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
  Receiver(const Clock& clock, const UserOwners& owners, double lines_per_second, std::function<void()> wake)
      : clock_(clock),
        owners_(owners),
        wake_(std::move(wake)),
        rate_(lines_per_second),
        allowance_(lines_per_second, clock.monotonic()) {}
  ~Receiver() { stop(); }
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  /// `descriptor`: the socket, which must outlive this object. An Error: the kernel provides no thread now.
  Result<Done> start(int descriptor) {
    if (is_running_) return Done{};
    descriptor_ = descriptor;
    stop_ = Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!stop_) return Error("eventfd");
    const Result<Done> started = worker_.start("jobs-receive", [this] {
      turn();
      return Nanoseconds(0);
    });
    is_running_ = static_cast<bool>(started);
    return started;
  }
  void stop() {
    is_stopping_ = true;
    worker_.request_stop();
    if (stop_) eventfd_write(stop_.number(), 1);
    worker_.join();
    is_running_ = false;
  }
  /// Reads what is left in the queue away, and returns how many lines it was. Call it after stop().
  std::uint64_t discard() {
    std::uint64_t lines = 0;
    const auto count = [&](const Datagram& datagram) { lines += count_lines(datagram.payload); };
    while (datagrams_.read(descriptor_, count) > 0) {
    }
    return lines;
  }
  void set_rate(double lines_per_second) noexcept { rate_ = lines_per_second; }

  /// See Inbox::take().
  void take(Letters& letters) { inbox_.take(letters); }
  /// Asks for the messages that are in the socket's queue now. Returns the number of the question.
  std::uint64_t ask() {
    const std::uint64_t question = ++asked_;
    if (stop_) eventfd_write(stop_.number(), 1);
    return question;
  }
  /// Waits until the messages of the question are in the inbox, for `at_most` this long.
  bool is_answered(std::uint64_t question, Nanoseconds at_most) GPUMETER_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (answered_ < question) answered_now_.wait_for(mutex_, at_most);
    return answered_ >= question;
  }

 private:
  static constexpr Nanoseconds kTick = std::chrono::seconds(1);
  /// How long the first turn waits for the file of subordinate uids.
  static constexpr Nanoseconds kOwnersPatience = std::chrono::seconds(1);
  /// Batches of one turn, also empty ones.
  static constexpr int kBatchesAtOnce = 256;
  /// After this many messages in a row further ones follow within microseconds.
  static constexpr std::size_t kBusy = 8;
  /// Sleeping and being woken takes longer than the kernel's shortest queue of 11 messages lasts, so the
  /// thread polls such a queue this long.
  static constexpr Nanoseconds kPoll = std::chrono::microseconds(50);
  /// While messages gather, each sending socket has room for 277 short ones in its default send buffer
  /// (net.core.wmem_default), which one sender fills in 300 us at the most. A pause should gather about a
  /// batch.
  static constexpr Nanoseconds kShortestPause = std::chrono::microseconds(20);
  static constexpr Nanoseconds kLongestPause = std::chrono::microseconds(200);
  /// While the queue is never empty, one wakeup of the thread "jobs" serves the messages of this time. A
  /// longer time loses more senders: their processes are looked up later, and may have ended.
  static constexpr Nanoseconds kHandOver = std::chrono::milliseconds(2);
  /// Handed over at once, so that a batch of long messages needs no memory of its own: some 2700 short ones.
  static constexpr std::size_t kMuch = std::size_t{128} << 10;
  /// As for the kernel's own threads. Among many busy senders a thread of equal rank would get too small a
  /// share of the processor to empty the queue. A daemon without CAP_SYS_NICE keeps its rank; its service
  /// then has a share of its own (CPUWeight=).
  static constexpr int kRank = -10;
  /// Messages after which a question counts as answered even if the machine's time was set back meanwhile.
  static constexpr std::uint64_t kLongestQueue = std::uint64_t{1} << 18;

  void turn() {
    if (uids_ == nullptr) begin();
    wait();
    now_ = clock_.monotonic();
    uids_ = owners_.now();
    if (now_ >= tick_at_) {
      allowance_.set_rate(rate_);
      allowance_.tick(now_);
      tick_at_ = now_ + kTick;
    }
    const std::uint64_t question = asked_;
    const Nanoseconds asked_at = clock_.realtime();
    std::uint64_t count = 0;
    recent_ = 0;
    bool is_behind = true;  // messages from before the question may be queued
    for (int batch = 0; (batch < kBatchesAtOnce || is_behind) && !is_stopping_; ++batch) {
      const std::size_t size = read();
      count += size;
      if (size == 0 || last_sent_ >= asked_at || count >= kLongestQueue) is_behind = false;
      if (size == 0 && !expects_more()) break;
    }
    hand_over();  // at once: a sender that ends can no longer be looked up
    answer(question);
  }
  void begin() {
    constexpr unsigned long kSlack = 1000;  // ns; the default of 50 us is as long as a pause
    prctl(PR_SET_TIMERSLACK, kSlack);
    setpriority(PRIO_PROCESS, 0, kRank);  // of the calling thread
    owners_.wait(kOwnersPatience);
  }
  /// Waits for a message, a question or the stop.
  void wait() {
    std::array<pollfd, 2> ready{{{descriptor_, POLLIN, 0}, {stop_.number(), POLLIN, 0}}};
    poll(ready.data(), ready.size(), static_cast<int>(kTick / std::chrono::milliseconds(1)));
    eventfd_t ignored = 0;
    if (ready[1].revents != 0) eventfd_read(stop_.number(), &ignored);
  }
  std::size_t read() {
    const Nanoseconds before = clock_.realtime();
    const std::size_t size =
        datagrams_.read(descriptor_, [this](const Datagram& datagram) { put(datagram); });
    now_ = clock_.monotonic();
    recent_ += size;
    is_long_ = is_long_ || (size == Datagrams::kBatch && last_sent_ < before);
    if (now_ - handed_at_ >= kHandOver) hand_over();
    return size;
  }
  /// The queue is empty. Returns false if the thread should sleep until the next message.
  bool expects_more() {
    static const bool kMayPoll = std::thread::hardware_concurrency() > 1;
    if (recent_ >= kBusy) {
      if (is_long_) {
        gather();
      } else if (kMayPoll) {
        poll_until_ = now_ + kPoll;
      }
      recent_ = 0;
      return is_long_ || kMayPoll;
    }
    return now_ < poll_until_;
  }
  void gather() {
    pause_ = recent_ > Datagrams::kBatch ? pause_ / 2 : pause_ + pause_ / 4;
    pause_ = std::clamp(pause_, kShortestPause, kLongestPause);
    const timespec pause{0, pause_.count()};
    nanosleep(&pause, nullptr);
  }
  void put(const Datagram& datagram) {
    last_sent_ = datagram.sent;
    const std::uint64_t refused =
        allowance_.refuse(uids_->owner_of(datagram.from.uid), datagram.payload, now_);
    if (refused > 0) {
      pending_.add_over_rate(refused);
    } else {
      pending_.add(datagram);
      if (pending_.size() >= kMuch) hand_over();
    }
  }
  void hand_over() {
    handed_at_ = now_;
    if (pending_.empty()) return;
    while (!inbox_.wait_for_room(std::chrono::milliseconds(100)) && !is_stopping_) {
    }
    if (inbox_.put(pending_)) wake_();
  }
  void answer(std::uint64_t question) GPUMETER_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    answered_ = question;
    answered_now_.notify_all();
  }

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
