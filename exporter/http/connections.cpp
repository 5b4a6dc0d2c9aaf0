#include "exporter/http/connections.hpp"

#include <netinet/in.h>
#include <poll.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace gpumeter {
namespace {

constexpr std::size_t kNetworkBytes = 8;  // of an IPv6 address: its first 64 bits

std::string bytes_of(const void* data, std::size_t size) { return {static_cast<const char*>(data), size}; }

std::string remote_ipv4(const in_addr& address) {
  if (ntohl(address.s_addr) >> 24 == IN_LOOPBACKNET) return {};
  return bytes_of(&address, sizeof address);
}

std::string remote_ipv6(const in6_addr& address) {
  if (IN6_IS_ADDR_LOOPBACK(&address)) return {};
  if (!IN6_IS_ADDR_V4MAPPED(&address)) return bytes_of(&address, kNetworkBytes);
  in_addr mapped{};
  std::memcpy(&mapped, &address.s6_addr[12], sizeof mapped);
  return remote_ipv4(mapped);
}

}  // namespace

std::string remote_peer(const sockaddr* address) {
  if (address == nullptr) return {};
  if (address->sa_family == AF_INET) {
    sockaddr_in ip{};
    std::memcpy(&ip, address, sizeof ip);
    return remote_ipv4(ip.sin_addr);
  }
  if (address->sa_family != AF_INET6) return {};
  sockaddr_in6 ip{};
  std::memcpy(&ip, address, sizeof ip);
  return remote_ipv6(ip.sin6_addr);
}

HttpConnection::HttpConnection(const HttpConnections& book, int descriptor, std::string peer)
    : book_(book), descriptor_(descriptor), peer_(std::move(peer)) {
  waits(book.clock_.monotonic(), book.limits_.request);
}

void HttpConnection::waits(Nanoseconds now, Nanoseconds at_most) noexcept {
  active_at_ = now.count();
  deadline_ = (now + at_most).count();
}

void HttpConnection::asked() noexcept {
  waits(book_.clock_.monotonic(), book_.limits_.answer);
  paused_ = nullptr;
  is_served_ = false;
  is_answered_ = true;
}

void HttpConnection::answered() noexcept {
  waits(book_.clock_.monotonic(), book_.limits_.next_request);
  is_answered_ = false;
  is_served_ = true;
}

HttpConnection* HttpConnections::opened(int descriptor, std::string peer) {
  std::unique_ptr<HttpConnection> connection(new HttpConnection(*this, descriptor, std::move(peer)));
  HttpConnection* const opened = connection.get();
  MutexLock lock(mutex_);
  connections_.push_back(std::move(connection));
  make_room(limits_.of_one_worker,
            [&](const HttpConnection& other) { return other.worker_ == opened->worker_; });
  if (!opened->peer_.empty()) {
    make_room(limits_.of_one_peer, [&](const HttpConnection& other) { return other.peer_ == opened->peer_; });
  }
  return opened;
}

void HttpConnections::closed(HttpConnection* connection) noexcept {
  std::unique_ptr<HttpConnection> ended;  // destroyed after the unlock, with all that it holds
  MutexLock lock(mutex_);
  const auto is_it = [&](const auto& entry) { return entry.get() == connection; };
  const auto found = std::ranges::find_if(connections_, is_it);
  if (found == connections_.end()) return;
  ended = std::exchange(*found, nullptr);
  std::swap(*found, connections_.back());
  connections_.pop_back();
}

// The oldest connection is ended whatever its state, so a client that reads or sends slowly keeps its slot no
// longer than a silent one. A scrape that takes milliseconds is the oldest only in a flood. At 13 000
// connections a second all slots are replaced in about 20 ms (measured on two cores).
template <class Belongs>
void HttpConnections::make_room(std::size_t limit, Belongs belongs) {
  std::size_t count = 0;
  HttpConnection* oldest = nullptr;
  for (const auto& connection : connections_) {
    if (connection->ended_ || !belongs(*connection)) continue;
    ++count;
    if (oldest == nullptr || connection->active_at_ < oldest->active_at_) oldest = connection.get();
  }
  if (count > limit && !end_departed(belongs)) end(*oldest);
}

// Clients that closed their connection after an answer need no room. When many scrape at once, for example by
// TLS with its handshakes, the library has not yet seen that they left.
template <class Belongs>
bool HttpConnections::end_departed(Belongs belongs) {
  bool has_ended = false;
  for (const auto& connection : connections_) {
    if (connection->ended_ || !connection->is_served_ || !belongs(*connection)) continue;
    pollfd descriptor{connection->descriptor_, POLLRDHUP, 0};
    if (poll(&descriptor, 1, 0) <= 0) continue;
    end(*connection);
    has_ended = true;
  }
  return has_ended;
}

std::size_t HttpConnections::answers(std::size_t limit) {
  const auto under_way = [](const HttpConnection& connection) { return connection.is_answered_.load(); };
  MutexLock lock(mutex_);
  make_room(limit, under_way);
  return static_cast<std::size_t>(std::ranges::count_if(
      connections_, [&](const auto& connection) { return !connection->ended_ && under_way(*connection); }));
}

void HttpConnections::look() {
  MutexLock lock(mutex_);
  const std::int64_t now = clock_.monotonic().count();
  for (const auto& connection : connections_) {
    if (!connection->ended_ && connection->deadline_ <= now) end(*connection);
  }
  end_half_closed();
}

// libmicrohttpd 0.9.75 uses edge-triggered polling and misses a FIN that arrives together with the request
// before it. Waiting for the second look spares a request that has just arrived and was not read yet.
void HttpConnections::end_half_closed() {
  std::vector<pollfd> descriptors;
  for (const auto& connection : connections_) descriptors.push_back({connection->descriptor_, POLLRDHUP, 0});
  if (poll(descriptors.data(), descriptors.size(), 0) < 0) return;
  for (std::size_t i = 0; i < connections_.size(); ++i) {
    HttpConnection& connection = *connections_[i];
    const bool is_idle = !connection.ended_ && !connection.is_answered_;
    const bool is_closed = is_idle && (descriptors[i].revents & (POLLRDHUP | POLLERR | POLLHUP)) != 0;
    if (is_closed && connection.half_closed_) end(connection);
    connection.half_closed_ = is_closed;
  }
}

// Called with the book's mutex held although it makes a system call: the call does not block. closed() waits
// for the mutex, so another socket cannot get the descriptor's number meanwhile.
void HttpConnections::end(HttpConnection& connection) noexcept {
  connection.ended_ = true;
  shutdown(connection.descriptor_, SHUT_RDWR);
  // Otherwise it would occupy one of the library's connections until its password is checked.
  if (void* request = connection.paused_; request != nullptr && release_) release_(request);
}

}  // namespace gpumeter
