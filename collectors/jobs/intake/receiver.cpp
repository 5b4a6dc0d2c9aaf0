#include "collectors/jobs/intake/receiver.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <thread>
#include <utility>

namespace gpumeter::jobs {
namespace {

constexpr Nanoseconds kTick = std::chrono::seconds(1);
/// How long the first turn waits for the file of subordinate uids.
constexpr Nanoseconds kOwnersPatience = std::chrono::seconds(1);
/// Batches of one turn, also empty ones.
constexpr int kBatchesAtOnce = 256;
/// After this many messages in a row further ones follow within microseconds.
constexpr std::size_t kBusy = 8;
/// Sleeping and being woken takes longer than the kernel's shortest queue of 11 messages lasts, so the thread
/// polls such a queue this long.
constexpr Nanoseconds kPoll = std::chrono::microseconds(50);
/// While messages gather, each sending socket has room for 277 short ones in its default send buffer
/// (net.core.wmem_default), which one sender fills in 300 us at the most. A pause should gather about a
/// batch.
constexpr Nanoseconds kShortestPause = std::chrono::microseconds(20);
constexpr Nanoseconds kLongestPause = std::chrono::microseconds(200);
/// While the queue is never empty, one wakeup of the thread "jobs" serves the messages of this time. A longer
/// time loses more senders: their processes are looked up later, and may have ended.
constexpr Nanoseconds kHandOver = std::chrono::milliseconds(2);
/// Handed over at once, so that a batch of long messages needs no memory of its own: some 2700 short ones.
constexpr std::size_t kMuch = std::size_t{128} << 10;
/// As for the kernel's own threads. Among many busy senders a thread of equal rank would get too small a
/// share of the processor to empty the queue. A daemon without CAP_SYS_NICE keeps its rank; its service then
/// has a share of its own (CPUWeight=).
constexpr int kRank = -10;
/// Messages after which a question counts as answered even if the machine's time was set back meanwhile.
constexpr std::uint64_t kLongestQueue = std::uint64_t{1} << 18;

}  // namespace

Receiver::Receiver(const Clock& clock, const UserOwners& owners, double lines_per_second,
                   std::function<void()> wake)
    : clock_(clock),
      owners_(owners),
      wake_(std::move(wake)),
      rate_(lines_per_second),
      allowance_(lines_per_second, clock.monotonic()) {}

Result<Done> Receiver::start(int descriptor) {
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

void Receiver::stop() {
  is_stopping_ = true;
  worker_.request_stop();
  if (stop_) eventfd_write(stop_.number(), 1);
  worker_.join();
  is_running_ = false;
}

std::uint64_t Receiver::discard() {
  std::uint64_t lines = 0;
  const auto count = [&](const Datagram& datagram) { lines += count_lines(datagram.payload); };
  while (datagrams_.read(descriptor_, count) > 0) {
  }
  return lines;
}

std::uint64_t Receiver::ask() {
  const std::uint64_t question = ++asked_;
  if (stop_) eventfd_write(stop_.number(), 1);
  return question;
}

bool Receiver::is_answered(std::uint64_t question, Nanoseconds at_most) {
  const MutexLock lock(mutex_);
  if (answered_ < question) answered_now_.wait_for(mutex_, at_most);
  return answered_ >= question;
}

void Receiver::answer(std::uint64_t question) {
  const MutexLock lock(mutex_);
  answered_ = question;
  answered_now_.notify_all();
}

/// Waits for a message, a question or the stop.
void Receiver::wait() {
  std::array<pollfd, 2> ready{{{descriptor_, POLLIN, 0}, {stop_.number(), POLLIN, 0}}};
  poll(ready.data(), ready.size(), static_cast<int>(kTick / std::chrono::milliseconds(1)));
  eventfd_t ignored = 0;
  if (ready[1].revents != 0) eventfd_read(stop_.number(), &ignored);
}

void Receiver::begin() {
  constexpr unsigned long kSlack = 1000;  // ns; the default of 50 us is as long as a pause
  prctl(PR_SET_TIMERSLACK, kSlack);
  setpriority(PRIO_PROCESS, 0, kRank);  // of the calling thread
  owners_.wait(kOwnersPatience);
}

void Receiver::turn() {
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

std::size_t Receiver::read() {
  const Nanoseconds before = clock_.realtime();
  const std::size_t size = datagrams_.read(descriptor_, [this](const Datagram& datagram) { put(datagram); });
  now_ = clock_.monotonic();
  recent_ += size;
  is_long_ = is_long_ || (size == Datagrams::kBatch && last_sent_ < before);
  if (now_ - handed_at_ >= kHandOver) hand_over();
  return size;
}

/// The queue is empty. Returns false if the thread should sleep until the next message.
bool Receiver::expects_more() {
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

void Receiver::gather() {
  pause_ = recent_ > Datagrams::kBatch ? pause_ / 2 : pause_ + pause_ / 4;
  pause_ = std::clamp(pause_, kShortestPause, kLongestPause);
  const timespec pause{0, pause_.count()};
  nanosleep(&pause, nullptr);
}

void Receiver::put(const Datagram& datagram) {
  last_sent_ = datagram.sent;
  const std::uint64_t refused = allowance_.refuse(uids_->owner_of(datagram.from.uid), datagram.payload, now_);
  if (refused > 0) {
    pending_.add_over_rate(refused);
  } else {
    pending_.add(datagram);
    if (pending_.size() >= kMuch) hand_over();
  }
}

void Receiver::hand_over() {
  handed_at_ = now_;
  if (pending_.empty()) return;
  while (!inbox_.wait_for_room(std::chrono::milliseconds(100)) && !is_stopping_) {
  }
  if (inbox_.put(pending_)) wake_();
}

}  // namespace gpumeter::jobs
