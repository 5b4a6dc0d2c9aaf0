#include "exporter/http_probe.hpp"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <system_error>

namespace gpumeter {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::string_view kRequest =
    "GET /-/healthy HTTP/1.1\r\nHost: localhost\r\nUser-Agent: gpumeter-probe\r\nConnection: close\r\n\r\n";
constexpr std::string_view kExpected = "HTTP/1.1 200 ";

Error last_error() { return Error(std::generic_category().message(errno)); }

class Connection {
 public:
  Connection(int family, SteadyClock::time_point deadline)
      : descriptor_(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)), deadline_(deadline) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() {
    if (descriptor_ >= 0) close(descriptor_);
  }

  Result<Done> connect_to(const Endpoint& endpoint) {
    const auto* address = reinterpret_cast<const sockaddr*>(&endpoint.address);
    if (connect(descriptor_, address, endpoint.length) == 0) return Done{};
    if (errno != EINPROGRESS) return last_error();
    if (!ready_for(POLLOUT)) return Error("no connection in time");
    int failure = 0;
    socklen_t length = sizeof failure;
    getsockopt(descriptor_, SOL_SOCKET, SO_ERROR, &failure, &length);
    if (failure != 0) return Error(std::generic_category().message(failure));
    return Done{};
  }

  /// The request fits into any socket buffer.
  Result<Done> request() {
    const ssize_t sent = send(descriptor_, kRequest.data(), kRequest.size(), MSG_NOSIGNAL);
    if (sent != static_cast<ssize_t>(kRequest.size())) return last_error();
    return Done{};
  }

  /// The first `length` bytes of the answer, or what comes before its end.
  Result<std::string> answer(std::size_t length) {
    std::string text(length, '\0');
    std::size_t have = 0;
    while (have < length) {
      if (!ready_for(POLLIN)) return Error("no answer in time");
      const ssize_t got = recv(descriptor_, text.data() + have, length - have, 0);
      if (got < 0) return last_error();
      if (got == 0) break;
      have += static_cast<std::size_t>(got);
    }
    text.resize(have);
    return text;
  }

 private:
  bool ready_for(short events) const {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - SteadyClock::now());
    pollfd poller{descriptor_, events, 0};
    return poll(&poller, 1, static_cast<int>(std::max(left.count(), decltype(left.count()){0}))) == 1;
  }

  int descriptor_;
  SteadyClock::time_point deadline_;
};

/// To connect to 0.0.0.0 is to connect to this machine on Linux; for [::], which serves IPv4 too, the IPv4
/// loopback is asked, which also exists where IPv6 is switched off.
Endpoint reachable(Endpoint endpoint) {
  if (endpoint.address.ss_family != AF_INET6) return endpoint;
  sockaddr_in6 address{};
  std::memcpy(&address, &endpoint.address, sizeof address);
  if (IN6_IS_ADDR_UNSPECIFIED(&address.sin6_addr)) {
    address.sin6_addr.s6_addr[10] = address.sin6_addr.s6_addr[11] = 0xFF;  // ::ffff:127.0.0.1
    address.sin6_addr.s6_addr[12] = 127;
    address.sin6_addr.s6_addr[15] = 1;
  }
  std::memcpy(&endpoint.address, &address, sizeof address);
  return endpoint;
}

Result<Done> ask(const Endpoint& endpoint, SteadyClock::time_point deadline) {
  Connection connection(endpoint.address.ss_family, deadline);
  if (const auto done = connection.connect_to(endpoint); !done) return done.error();
  if (const auto done = connection.request(); !done) return done.error();
  const auto answer = connection.answer(kExpected.size());
  if (!answer) return answer.error();
  if (*answer != kExpected) return Error("answered \"" + *answer + "\"");
  return Done{};
}

}  // namespace

Result<Done> probe(const Endpoint& endpoint, std::chrono::milliseconds timeout) {
  const auto done = ask(reachable(endpoint), SteadyClock::now() + timeout);
  if (!done) return done.error().with("HTTP listener " + endpoint.text());
  return Done{};
}

}  // namespace gpumeter
