#include "exporter/http/event_stream.hpp"

#include <algorithm>
#include <utility>

#include "collectors/api/event_ledger.hpp"
#include "exporter/access/settings.hpp"
#include "exporter/http/connections.hpp"
#include "exporter/json/api.hpp"

namespace gpumeter {

void EventStream::attach(void* request, HttpConnection* entry, const Pausing& pausing) noexcept {
  request_ = request;
  entry_ = entry;
  pausing_ = pausing;
}

// A paused request is resumed under the same mutex, so that a resumption is not lost. A pause only sets a
// flag of the connection, which the calling thread serves.
ssize_t EventStream::read(char* to, std::size_t most) {
  const MutexLock lock(mutex_);
  if (is_over_) return kEnd;
  if (sent_ == text_.size()) fill();
  const bool is_waiting = text_.empty();
  if (entry_ != nullptr) entry_->streams(is_waiting ? request_ : nullptr);
  if (is_waiting) {
    is_paused_ = true;
    pausing_.pause(request_);
    return 0;
  }
  const std::size_t size = text_.copy(to, most, sent_);
  sent_ += size;
  return static_cast<ssize_t>(size);
}

void EventStream::fill() {
  const Nanoseconds now = clock_.monotonic();
  const bool is_first = heartbeat_at_ == Nanoseconds{};
  text_.clear();
  sent_ = 0;
  const std::vector<EventRecord> next = machine_.events->after(last_, 1);
  if (!next.empty()) {
    last_ = next.front().id;
    text_ = event_of_stream(next.front(), *machine_.known_devices.get());
  } else if (now >= heartbeat_at_ && !is_first) {
    text_ = ":\n\n";
  }
  if (!text_.empty() || is_first) heartbeat_at_ = now + kHeartbeat;
}

void EventStream::look() {
  const MutexLock lock(mutex_);
  if (!is_paused_) return;
  if (clock_.monotonic() >= heartbeat_at_ || machine_.events->has_after(last_)) resume();
}

void EventStream::end() {
  const MutexLock lock(mutex_);
  is_over_ = true;
  if (is_paused_) resume();
}

void EventStream::resume() {
  is_paused_ = false;
  pausing_.resume(request_);
}

bool EventStreams::add(const std::shared_ptr<EventStream>& stream, const std::string& peer,
                       std::shared_ptr<const WebGeneration> access) {
  const MutexLock lock(mutex_);
  static_cast<void>(open());
  const auto of_peer = std::ranges::count(open_, peer, &Open::peer);
  if (is_closed_ || open_.size() >= kMost || static_cast<std::size_t>(of_peer) >= kMostOfPeer) return false;
  open_.push_back({stream, peer, std::move(access)});
  return true;
}

std::vector<std::shared_ptr<EventStream>> EventStreams::open() {
  std::vector<std::shared_ptr<EventStream>> streams;
  std::erase_if(open_, [&](const Open& each) {
    auto stream = each.stream.lock();
    if (!stream) return true;
    streams.push_back(std::move(stream));
    return false;
  });
  return streams;
}

void EventStreams::look(const std::shared_ptr<const WebGeneration>& access) {
  const MutexLock lock(mutex_);
  for (const Open& each : open_) {
    const auto stream = each.stream.lock();
    if (!stream) continue;
    const bool is_new = each.access != nullptr && each.access != access;
    if (is_new && each.access->settings.users != access->settings.users) stream->end();
    stream->look();
  }
}

void EventStreams::release(const void* request) {
  const MutexLock lock(mutex_);
  for (const auto& stream : open()) {
    if (stream->is_of(request)) stream->end();
  }
}

void EventStreams::close() {
  const MutexLock lock(mutex_);
  is_closed_ = true;
  for (const auto& stream : open()) stream->end();
}

}  // namespace gpumeter
