#include "exporter/http/connections.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>

namespace gpumeter {

namespace {

/// A lack of descriptors ends when it was not noticed for so long: longer than scrapers' usual intervals.
constexpr auto kLacks = std::chrono::minutes(1);

/// How long a thread without connections waits before it accepts again. A scrape is late by as much.
constexpr auto kAcceptAgain = std::chrono::milliseconds(50);

/// Only the worker's thread writes these fields; whoever reads a later one has the earlier ones too. A
/// request sets a dozen, and a stronger order takes 6 ns for each.
template <class T>
void publish(std::atomic<T>& field, std::type_identity_t<T> value) noexcept {
  field.store(value, std::memory_order_release);
}

}  // namespace

void HttpConnection::waits(Nanoseconds now, Nanoseconds at_most) noexcept {
  publish(active_at_, now.count());
  publish(deadline_, (now + at_most).count());
}

void HttpConnection::asked() noexcept {
  waits(book_.clock_.monotonic(), book_.limits_.answer);
  publish(paused_, nullptr);
  publish(phase_, Phase::asked);
  ++group_->second.answers;
}

void HttpConnection::paused(void* request) noexcept {
  publish(paused_, request);
  publish(phase_, Phase::paused);
  --group_->second.answers;
}

void HttpConnection::sends(const void* body, std::size_t bytes, Nanoseconds timeout) noexcept {
  publish(deadline_, active_at_ + std::min(timeout, book_.limits_.answer).count());
  publish(active_at_, book_.clock_.monotonic().count());
  publish(bytes_, bytes);
  book_.bytes_ += bytes;
  publish(body_, body);
  publish(phase_, Phase::sending);
}

void HttpConnection::streams(void* waiting, const void* message, std::size_t bytes) noexcept {
  if (is_answered()) --group_->second.answers;  // the first message
  waits(book_.clock_.monotonic(), book_.limits_.answer);
  if (waiting != nullptr) publish(deadline_, INT64_MAX);
  publish(paused_, waiting);
  book_.bytes_ += bytes - bytes_;  // modulo 2^64
  publish(bytes_, bytes);
  publish(body_, message);
  publish(phase_, waiting != nullptr ? Phase::paused : Phase::streaming);
}

void HttpConnection::answered() noexcept {
  if (is_answered()) --group_->second.answers;
  publish(body_, nullptr);
  book_.bytes_ -= bytes_.load();
  publish(bytes_, 0);
  waits(book_.clock_.monotonic(), book_.limits_.next_request);
  publish(phase_, Phase::served);
}

HttpConnection* HttpConnections::opened(int descriptor, Peer peer) {
  std::unique_ptr<HttpConnection> connection(new HttpConnection(*this, descriptor));
  connection->waits(clock_.monotonic(), limits_.request);
  HttpConnection* const opened = connection.get();
  MutexLock lock(mutex_);
  connections_.reserve(connections_.size() + 1);  // nothing fails once the group counts the entry
  opened->group_ = groups_.try_emplace(std::move(peer)).first;
  ++opened->group_->second.entries;
  ++opened->group_->second.open;
  connections_.push_back(std::move(connection));
  make_room_on_worker_of(*opened);
  if (opened->group_->first.is_remote) make_room_at_peer_of(*opened);
  make_room_of_descriptors(*opened);
  return opened;
}

void HttpConnections::closed(HttpConnection* connection) noexcept {
  std::unique_ptr<HttpConnection> ended;  // destroyed after the unlock, with all that it holds
  MutexLock lock(mutex_);
  const auto is_it = [&](const auto& entry) { return entry.get() == connection; };
  const auto found = std::ranges::find_if(connections_, is_it);
  if (found == connections_.end()) return;
  HttpConnection::Group& group = connection->group_->second;
  if (!connection->ended_) --group.open;
  if (--group.entries == 0) groups_.erase(connection->group_);
  ended = std::exchange(*found, nullptr);
  std::swap(*found, connections_.back());
  connections_.pop_back();
}

template <class Belongs>
std::size_t HttpConnections::count(Belongs belongs) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(connections_, [&](const auto& each) { return !each->ended_ && belongs(*each); }));
}

template <class Belongs>
HttpConnection* HttpConnections::first(Belongs belongs, Phase phase, Nanoseconds since) {
  const auto order = [](const HttpConnection& each) {
    return std::tuple(-static_cast<std::int64_t>(each.group_->second.open), each.phase_.load(),
                      each.active_at_.load());
  };
  HttpConnection* found = nullptr;
  for (const auto& each : connections_) {
    if (each->ended_ || each->phase_ > phase || each->active_at_ > since.count() || !belongs(*each)) continue;
    if (found == nullptr || order(*each) < order(*found)) found = each.get();
  }
  return found;
}

// A flood of connections replaces those without a request, and is slowed down to what the patience permits.
// Without it, 13 000 connections a second would replace all of them in about 20 ms (measured on two cores),
// and with them the connection of a scraper that was off its processor for that long. Only the highest limit
// ignores the patience, because the library accepts no connections above its own, not even the probe's.
void HttpConnections::make_room_on_worker_of(const HttpConnection& opened) {
  const auto here = [&](const HttpConnection& other) {
    return other.worker_ == opened.worker_ && &other != &opened;
  };
  std::size_t open = count(here) + 1;
  if (open <= limits_.of_one_worker || end_departed(here)) return;
  const Nanoseconds now = clock_.monotonic();
  for (; open > limits_.of_one_worker; --open) {
    HttpConnection* const waits = first(here, Phase::served, now - limits_.patience);
    if (waits == nullptr) break;
    end(*waits);
  }
  if (open <= limits_.most_of_one_worker) return;
  if (HttpConnection* const any = first(here, Phase::sending, now)) end(*any);
}

void HttpConnections::make_room_at_peer_of(const HttpConnection& opened) {
  const auto of_peer = [&](const HttpConnection& other) {
    return other.group_ == opened.group_ && &other != &opened;
  };
  if (count(of_peer) < limits_.of_one_peer || end_departed(of_peer)) return;
  if (HttpConnection* const any = first(of_peer, Phase::sending, clock_.monotonic())) end(*any);
}

// The kernel gives the lowest number that is free, so at least as many descriptors are open. The number of
// the connection is compared, not that of all connections, because the daemon's drivers may use any number.
void HttpConnections::make_room_of_descriptors(const HttpConnection& opened) {
  rlimit most{};
  if (getrlimit(RLIMIT_NOFILE, &most) != 0) return;
  const rlim_t free = std::min<rlim_t>(most.rlim_cur / 4, limits_.free_descriptors);
  const auto others = [&](const HttpConnection& other) { return &other != &opened; };
  auto used = static_cast<rlim_t>(std::max(opened.descriptor_ - closing(), 0));
  for (; used + free >= most.rlim_cur; --used) {
    if (end_idle_for_descriptor(others)) continue;
    if (used + free / 2 < most.rlim_cur) return;
    HttpConnection* const any = first(others, Phase::sending, clock_.monotonic());
    if (any == nullptr) return;
    end(*any);
  }
}

template <class Belongs>
bool HttpConnections::end_idle_for_descriptor(Belongs belongs) {
  const Nanoseconds now = clock_.monotonic();
  lacks_until_ = (now + kLacks).count();
  if (end_departed(belongs)) return true;
  HttpConnection* const idle = first(belongs, Phase::served, now - limits_.patience);
  if (idle != nullptr) end(*idle);
  return idle != nullptr;
}

// The kernel reports the lack of a descriptor also if no connection waits any more, because another thread
// has accepted it. Therefore only idle connections end here. A thread that has connections does not accept
// until one of them is closed; the thread of the ended connection is then the one that accepts.
void HttpConnections::accept_failed() noexcept {
  {
    const MutexLock lock(mutex_);
    is_starved_ = true;
    if (!make_room_for_starved()) spare_ = Descriptor();
    const auto here = [](const auto& each) { return each->worker_ == std::this_thread::get_id(); };
    if (std::ranges::any_of(connections_, here)) return;
  }
  std::this_thread::sleep_for(kAcceptAgain);
}

bool HttpConnections::make_room_for_starved() {
  if (!is_starved_) return false;
  const auto all = [](const HttpConnection&) { return true; };
  const bool has_room = closing() > 0 || end_idle_for_descriptor(all);
  is_starved_ = !has_room;
  return has_room;
}

int HttpConnections::closing() const {
  return static_cast<int>(std::ranges::count_if(connections_, [](const auto& each) { return each->ended_; }));
}

// Clients that closed their connection after an answer need no room. When many scrape at once, for example by
// TLS with its handshakes, the library has not yet seen that they left.
template <class Belongs>
bool HttpConnections::end_departed(Belongs belongs) {
  bool has_ended = false;
  for (const auto& connection : connections_) {
    if (connection->ended_ || connection->phase_ != Phase::served || !belongs(*connection)) continue;
    pollfd descriptor{connection->descriptor_, POLLRDHUP, 0};
    if (poll(&descriptor, 1, 0) <= 0) continue;
    end(*connection);
    has_ended = true;
  }
  return has_ended;
}

bool HttpConnections::holds_too_much() const {
  std::set<const void*> seen;
  std::size_t bytes = 0, largest = 0;
  for (const auto& each : connections_) {
    const void* const body = each->body_;
    if (each->ended_ || body == nullptr || !seen.insert(body).second) continue;
    bytes += each->bytes_;
    largest = std::max(largest, each->bytes_.load());
  }
  return bytes > std::max(limits_.bytes, 2 * largest);
}

HttpConnection* HttpConnections::longest_answer(const HttpConnection* asker, bool or_stream) {
  const std::int64_t since = (clock_.monotonic() - limits_.long_answer).count();
  const auto order = [](const HttpConnection& each) {
    return std::tuple(-static_cast<std::int64_t>(each.group_->second.answers.load()), each.active_at_.load());
  };
  const auto gives_way = [&](const HttpConnection& each) {
    if (each.active_at_ <= since) return true;
    return asker != nullptr && each.group_->second.answers > 2 * asker->group_->second.answers;
  };
  HttpConnection* found = nullptr;
  for (const auto& each : connections_) {
    const bool is_sending = each->phase_ == Phase::sending || (or_stream && each->phase_ == Phase::streaming);
    if (each->ended_ || !is_sending || !gives_way(*each)) continue;
    if (found == nullptr || order(*each) < order(*found)) found = each.get();
  }
  return found;
}

std::size_t HttpConnections::make_room_for_answers(std::size_t most, const HttpConnection* asker) {
  MutexLock lock(mutex_);
  std::size_t under_way = count([](const HttpConnection& each) { return each.is_answered(); });
  for (;;) {
    const bool is_full = holds_too_much();
    if (under_way <= most && !is_full) return under_way;
    HttpConnection* const longest = longest_answer(asker, is_full);
    if (longest == nullptr) return std::max(under_way, most + 1);
    if (longest->is_answered()) --under_way;
    end(*longest);
  }
}

void HttpConnections::look() {
  MutexLock lock(mutex_);
  const std::int64_t now = clock_.monotonic().count();
  for (const auto& connection : connections_) {
    if (!connection->ended_ && connection->deadline_ <= now) end(*connection);
  }
  end_half_closed();
  make_room_for_starved();
  if (!spare_) spare_ = Descriptor(eventfd(0, EFD_CLOEXEC));
}

// libmicrohttpd 0.9.75 uses edge-triggered polling and misses a FIN that arrives together with the request
// before it. Waiting for the second look spares a request that has just arrived and was not read yet.
void HttpConnections::end_half_closed() {
  std::vector<pollfd> descriptors;
  for (const auto& connection : connections_) descriptors.push_back({connection->descriptor_, POLLRDHUP, 0});
  if (poll(descriptors.data(), descriptors.size(), 0) < 0) return;
  for (std::size_t i = 0; i < connections_.size(); ++i) {
    HttpConnection& connection = *connections_[i];
    const bool is_idle = !connection.ended_ && !connection.is_answered();
    const bool is_closed = is_idle && (descriptors[i].revents & (POLLRDHUP | POLLERR | POLLHUP)) != 0;
    if (is_closed && connection.half_closed_) end(connection);
    connection.half_closed_ = is_closed;
  }
}

// Called with the book's mutex held although it makes a system call: the call does not block. closed() waits
// for the mutex, so another socket cannot get the descriptor's number meanwhile.
void HttpConnections::end(HttpConnection& connection) noexcept {
  connection.ended_ = true;
  --connection.group_->second.open;
  shutdown(connection.descriptor_, SHUT_RDWR);
  // Otherwise it would occupy one of the library's connections until its password is checked.
  if (void* request = connection.paused_; request != nullptr && release_) release_(request);
}

}  // namespace gpumeter
