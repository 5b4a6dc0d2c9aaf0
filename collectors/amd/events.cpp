#include "collectors/amd/events.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "base/text.hpp"

namespace gpumeter::amd {
namespace {

// linux/kfd_ioctl.h, which needs headers of libdrm: struct kfd_ioctl_smi_events_args, AMDKFD_IOC_SMI_EVENTS.
struct SmiEventsArguments {
  std::uint32_t gpuid;    // to the driver
  std::uint32_t anon_fd;  // from the driver
};
constexpr unsigned long kSmiEvents = _IOWR('K', 0x1F, SmiEventsArguments);

Error failure(const std::string& what, int error) {
  return Error(what + ": " + std::generic_category().message(error));
}

constexpr auto kTryAgain = std::chrono::seconds(5);

// A storm of faults ends after this many reads, so that a stop does not wait for the end of the storm.
constexpr int kMostReads = 100;

/// The driver reports resets and throttling for each node of a divided card, so only the first node's count.
constexpr std::uint64_t events_of_node(bool is_first) noexcept {
  std::uint64_t mask = 0;
  for (const EventKind& event : kEvents) {
    if (is_first || event.name == "vm_fault") mask |= mask_of(event);
  }
  return mask;
}

}  // namespace

std::optional<std::size_t> parse_smi_line(std::string_view line) noexcept {
  const auto number = parse_number<std::uint32_t>(take_until(line, ' '), 16);
  const auto* const known = std::ranges::find(kEvents, number.value_or(0), &EventKind::number);
  if (known == std::end(kEvents)) return std::nullopt;
  return static_cast<std::size_t>(known - std::begin(kEvents));
}

Result<Descriptor> KfdDevice::open_stream(std::uint32_t gpu_id, std::uint64_t mask) {
  if (!node_) node_ = Descriptor(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
  if (!node_) return failure(path_, errno);
  SmiEventsArguments request{};
  request.gpuid = gpu_id;
  if (::ioctl(node_.number(), kSmiEvents, &request) != 0)
    return failure(path_ + ", AMDKFD_IOC_SMI_EVENTS", errno);
  Descriptor stream(static_cast<int>(request.anon_fd));
  ::fcntl(stream.number(), F_SETFD, FD_CLOEXEC);
  if (::write(stream.number(), &mask, sizeof mask) != sizeof mask)
    return failure(path_ + ", the choice of events", errno);
  return stream;
}

std::shared_ptr<const CardEvents> EventListener::listen(const std::string& uuid,
                                                        std::vector<std::uint32_t> gpu_ids) {
  MutexLock lock(mutex_);
  Card& card = cards_[uuid];
  if (card.gpu_ids == gpu_ids) return card.events;  // opened again: the streams stay
  card.gpu_ids = std::move(gpu_ids);
  card.generation = ++generation_;
  changed_.notify_all();
  return card.events;
}

void EventListener::forget(const std::string& uuid) {
  MutexLock lock(mutex_);
  const auto card = cards_.find(uuid);
  if (card == cards_.end()) return;
  card->second.gpu_ids.clear();
  card->second.generation = ++generation_;
  card->second.events->set_reported(false);
  changed_.notify_all();
}

std::vector<DeviceEvent> EventListener::wait(Nanoseconds at_most) {
  std::vector<DeviceEvent> events;
  const std::map<std::string, Card> cards = wanted();
  follow(cards, events);
  if (events.empty()) wait_for_bytes(at_most);
  read(cards, events);
  return events;
}

std::map<std::string, EventListener::Card> EventListener::wanted() const {
  MutexLock lock(mutex_);
  return cards_;
}

void EventListener::follow(const std::map<std::string, Card>& wanted, std::vector<DeviceEvent>& out) {
  for (const auto& [uuid, card] : wanted) {
    Open& streams = open_[uuid];
    if (streams.generation != card.generation) {
      streams = Open();
      streams.generation = card.generation;
      card.events->set_reported(false);
    }
    const bool is_due = !streams.has_failed || clock_.monotonic() >= streams.try_again_at;
    if (streams.streams.empty() && !card.gpu_ids.empty() && is_due) open(uuid, card, streams, out);
  }
}

// A refusal is logged once.
void EventListener::open(const std::string& uuid, const Card& card, Open& streams,
                         std::vector<DeviceEvent>& out) {
  for (const std::uint32_t gpu : card.gpu_ids) {
    Result<Descriptor> opened = device_->open_stream(gpu, events_of_node(gpu == card.gpu_ids.front()));
    if (!opened) {
      streams.streams.clear();
      streams.try_again_at = clock_.monotonic() + kTryAgain;
      if (!std::exchange(streams.has_failed, true))
        out.push_back({uuid, "no events, opening is retried: " + opened.error().message()});
      return;
    }
    ::fcntl(opened->number(), F_SETFL, O_NONBLOCK);
    streams.streams.push_back({*std::move(opened), {}});
  }
  streams.has_failed = false;
  card.events->set_reported(true);
}

void EventListener::wait_for_bytes(Nanoseconds at_most) {
  polled_.clear();
  for (const auto& [uuid, open] : open_) {
    for (const Stream& stream : open.streams) polled_.push_back({stream.descriptor.number(), POLLIN, 0});
  }
  if (polled_.empty()) {
    MutexLock lock(mutex_);
    changed_.wait_for(mutex_, at_most);
    return;
  }
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(at_most).count();
  ::poll(polled_.data(), polled_.size(), static_cast<int>(milliseconds));
}

// A stream that fails belongs to a driver that was unloaded, or to a card that was removed.
void EventListener::read(const std::map<std::string, Card>& wanted, std::vector<DeviceEvent>& out) {
  for (const auto& [uuid, card] : wanted) {
    Open& open = open_[uuid];
    bool works = true;
    for (Stream& stream : open.streams) works = read_stream(stream, uuid, *card.events, out) && works;
    if (works) continue;
    open.streams.clear();
    open.has_failed = true;
    open.try_again_at = clock_.monotonic() + kTryAgain;
    card.events->set_reported(false);
  }
}

bool EventListener::read_stream(Stream& stream, const std::string& uuid, CardEvents& events,
                                std::vector<DeviceEvent>& out) const {
  std::array<char, 4096> buffer{};
  for (int i = 0; i < kMostReads; ++i) {
    const ssize_t size = ::read(stream.descriptor.number(), buffer.data(), buffer.size());
    if (size < 0) return errno == EAGAIN || errno == EINTR;
    if (size == 0) return false;
    stream.text.add({buffer.data(), static_cast<std::size_t>(size)}, [&](std::size_t place) {
      events.count(place);
      out.push_back({uuid, std::string(kEvents[place].name)});
    });
  }
  return true;
}

}  // namespace gpumeter::amd
