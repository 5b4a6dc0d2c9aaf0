#include "collectors/jobs/intake/receiver.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

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
/// After a batch of this size further messages follow within microseconds. Sleeping and being woken takes
/// longer than the kernel's shortest queue of 11 messages lasts, so the thread polls the queue this long.
constexpr std::size_t kBusy = 8;
constexpr Nanoseconds kSpin = std::chrono::microseconds(50);
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

void Receiver::turn() {
  if (uids_ == nullptr) {
    setpriority(PRIO_PROCESS, 0, kRank);  // of the calling thread
    owners_.wait(kOwnersPatience);
  }
  static const bool kMaySpin = std::thread::hardware_concurrency() > 1;
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
  bool is_behind = true;  // messages from before the question may be queued
  Nanoseconds spin_until{};
  for (int batch = 0; (batch < kBatchesAtOnce || is_behind) && !is_stopping_; ++batch) {
    const std::size_t size = read();
    count += size;
    if (size == 0 || last_sent_ >= asked_at || count >= kLongestQueue) is_behind = false;
    now_ = clock_.monotonic();
    if (size >= kBusy && kMaySpin) spin_until = now_ + kSpin;
    if (size == 0 && now_ >= spin_until) break;
  }
  if (over_rate_ > 0) inbox_.put_over_rate(std::exchange(over_rate_, 0));
  answer(question);
}

std::size_t Receiver::read() {
  while (!inbox_.wait_for_room(std::chrono::milliseconds(100))) {
    if (is_stopping_) return 0;
  }
  return datagrams_.read(descriptor_, [this](const Datagram& datagram) { put(datagram); });
}

void Receiver::put(const Datagram& datagram) {
  last_sent_ = datagram.sent;
  const std::uint64_t refused = allowance_.refuse(uids_->owner_of(datagram.from.uid), datagram.payload, now_);
  if (refused > 0) {
    over_rate_ += refused;
  } else if (inbox_.put(datagram)) {
    wake_();
  }
}

}  // namespace gpumeter::jobs
