#include "exporter/http/event_stream.hpp"

#include <algorithm>
#include <utility>

#include "collectors/api/event_ledger.hpp"
#include "exporter/access/settings.hpp"
#include "exporter/http/connections.hpp"
#include "exporter/json/api.hpp"
#include "exporter/web/live_answers.hpp"

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
  if (message_ == nullptr) {
    message_ = next();
    sent_ = 0;
    const bool is_waiting = message_ == nullptr;
    if (entry_ != nullptr)
      entry_->streams(is_waiting ? request_ : nullptr, message_.get(), is_waiting ? 0 : message_->size());
    is_paused_ = is_waiting;
    if (is_waiting) pausing_.pause(request_);
    if (is_waiting) return 0;
  }
  const std::size_t size = message_->copy(to, most, sent_);
  sent_ += size;
  if (sent_ == message_->size()) message_ = nullptr;
  return static_cast<ssize_t>(size);
}

SharedBytes EventStream::next() {
  const Nanoseconds now = clock_.monotonic();
  SharedBytes message;
  if (heartbeat_at_ == Nanoseconds{}) {
    message = std::make_shared<const std::string>("retry: 2000\n\n");  // milliseconds to a new attempt
  } else if (const auto events = machine_.events->after(last_, 1); !events.empty()) {
    last_ = events.front().id;
    message =
        std::make_shared<const std::string>(event_of_stream(events.front(), *machine_.known_devices.get()));
  } else if (message = new_picture(); message != nullptr) {
    shown_ = message;
  } else if (now >= heartbeat_at_) {
    message = std::make_shared<const std::string>(":\n\n");
  }
  if (message != nullptr) heartbeat_at_ = now + kHeartbeat;
  return message;
}

SharedBytes EventStream::new_picture() const {
  SharedBytes picture = pictures_ == nullptr ? nullptr : pictures_->newest_message();
  return picture == shown_ ? nullptr : picture;
}

void EventStream::look() {
  const MutexLock lock(mutex_);
  if (!is_paused_) return;
  const bool is_due = clock_.monotonic() >= heartbeat_at_ || machine_.events->has_after(last_);
  if (is_due || new_picture() != nullptr) resume();
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
