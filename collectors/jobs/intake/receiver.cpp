#include "collectors/jobs/intake/receiver.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <ctime>
#include <thread>
#include <utility>

#include "collectors/jobs/wire/line.hpp"

namespace gpumeter::jobs {
namespace {

/// A cache line more than a message has, because at a distance of 64 KiB the starts of all messages would
/// share one set of the processor's cache.
constexpr std::size_t kStride = kMaxPayload + 64;

/// Room for exactly the time and the credentials, which the kernel puts first. Descriptors that a client
/// sends along then do not fit, and the kernel closes them.
constexpr std::size_t kControl = CMSG_SPACE(sizeof(timespec)) + CMSG_SPACE(sizeof(ucred));

/// Closes sent descriptors if a kernel delivers them nevertheless.
void close_all(const cmsghdr& part) {
  const std::size_t count = (part.cmsg_len - CMSG_LEN(0)) / sizeof(int);
  for (std::size_t i = 0; i < count; ++i) {
    int descriptor = -1;
    std::memcpy(&descriptor, CMSG_DATA(&part) + i * sizeof descriptor, sizeof descriptor);
    close(descriptor);
  }
}

void read_control(msghdr& header, Datagram& datagram) {
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

}  // namespace

struct Datagrams::Batch {
  static constexpr std::size_t kBatch = Datagrams::kBatch;

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

Datagrams::Datagrams() : batch_(std::make_unique<Batch>()) {}
Datagrams::~Datagrams() = default;

std::size_t Datagrams::read(int descriptor, const std::function<void(const Datagram&)>& take) {
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

namespace {

/// Memory that is kept for the next messages: more than all jobs of a machine send between two turns.
constexpr std::size_t kKept = 65'536;

template <class Element>
void clear_vector(std::vector<Element>& vector) {
  if (vector.capacity() * sizeof(Element) > kKept) {
    vector = {};
  } else {
    vector.clear();
  }
}

}  // namespace

/// The payload of a datagram that was cut is of no use.
void Letters::add(const Datagram& datagram) {
  const std::string_view payload = datagram.cut ? std::string_view() : datagram.payload;
  bytes_.insert(bytes_.end(), payload.begin(), payload.end());
  heads_.push_back({datagram.from, datagram.sent, static_cast<std::uint32_t>(payload.size()), datagram.cut});
}

void Letters::append(Letters& later) {
  if (empty()) return std::swap(*this, later);
  bytes_.insert(bytes_.end(), later.bytes_.begin(), later.bytes_.end());
  heads_.insert(heads_.end(), later.heads_.begin(), later.heads_.end());
  over_rate_ += later.over_rate_;
  later.clear();
}

void Letters::clear() {
  clear_vector(bytes_);
  clear_vector(heads_);
  over_rate_ = 0;
}

bool Inbox::put(Letters& letters) {
  const MutexLock lock(mutex_);
  const bool had_messages = waiting_.has_messages();
  waiting_.append(letters);
  return waiting_.has_messages() && !had_messages;
}

bool Inbox::wait_for_room(Nanoseconds at_most) {
  const MutexLock lock(mutex_);
  if (waiting_.size() >= kRoom) taken_.wait_for(mutex_, at_most);
  return waiting_.size() < kRoom;
}

void Inbox::take(Letters& letters) {
  const MutexLock lock(mutex_);
  std::swap(waiting_, letters);
  taken_.notify_all();
}

std::uint64_t count_lines(std::string_view payload) noexcept {
  const auto ends = static_cast<std::uint64_t>(std::ranges::count(payload, '\n'));
  return ends + (payload.ends_with('\n') ? 0 : 1);
}

void Allowance::set_rate(double lines_per_second) noexcept {
  rate_ = 2 * lines_per_second;
  rest_.set(rate_, rate_);
  for (auto& [user, bucket] : users_) bucket.set(rate_, rate_);
}

TokenBucket& Allowance::bucket_of(std::uint32_t user, Nanoseconds now) {
  const auto found = users_.find(user);
  if (found != users_.end()) return found->second;
  if (users_.size() >= kMostUsers) return rest_;
  return users_.try_emplace(user, rate_, rate_, now).first->second;
}

std::uint64_t Allowance::refuse(std::uint32_t user, std::string_view payload, Nanoseconds now) {
  const std::uint64_t lines = count_lines(payload);
  return bucket_of(user, now).take(now, static_cast<double>(lines)) ? 0 : lines;
}

void Allowance::tick(Nanoseconds now) {
  std::erase_if(users_, [&](const auto& entry) { return entry.second.is_full(now); });
}

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
