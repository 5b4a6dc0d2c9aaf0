#include "exporter/http/probe.hpp"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace gpumeter {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::string_view kRequest =
    "GET /-/healthy HTTP/1.1\r\nHost: localhost\r\nUser-Agent: gpumeter-probe\r\nConnection: close\r\n\r\n";
constexpr std::string_view kExpected = "HTTP/1.1 200 ";

Error last_error() { return Error(std::generic_category().message(errno)); }

bool is_readable(int descriptor, SteadyClock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - SteadyClock::now());
  pollfd poller{descriptor, POLLIN, 0};
  return poll(&poller, 1, static_cast<int>(std::max(left.count(), decltype(left.count()){0}))) == 1;
}

/// The same socket under a number of that remainder; the given one is closed. -1: there is none left.
int renumbered(int descriptor, unsigned remainder, unsigned divisor) {
  while (descriptor >= 0 && static_cast<unsigned>(descriptor) % divisor != remainder) {
    const int next = fcntl(descriptor, F_DUPFD_CLOEXEC, descriptor + 1);
    close(descriptor);
    descriptor = next;
  }
  return descriptor;
}

}  // namespace

Result<HttpProbe> HttpProbe::ask(const Serve& serve, unsigned remainder, unsigned divisor) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) return last_error();
  HttpProbe probe(ends[0]);
  const int served = renumbered(ends[1], remainder, divisor);
  if (served < 0) return last_error();
  const ssize_t sent = send(probe.descriptor_, kRequest.data(), kRequest.size(), MSG_NOSIGNAL);
  if (!serve(served) || sent != static_cast<ssize_t>(kRequest.size())) return Error("it takes no connection");
  return probe;
}

HttpProbe::HttpProbe(HttpProbe&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

HttpProbe::~HttpProbe() {
  if (descriptor_ >= 0) close(descriptor_);
}

Result<Done> HttpProbe::answer(SteadyClock::time_point deadline) const {
  std::string text(kExpected.size(), '\0');
  std::size_t have = 0;
  while (have < text.size()) {
    if (!is_readable(descriptor_, deadline)) return Error("no answer in time");
    const ssize_t got = recv(descriptor_, text.data() + have, text.size() - have, 0);
    if (got < 0) return last_error();
    if (got == 0) break;
    have += static_cast<std::size_t>(got);
  }
  text.resize(have);
  if (text != kExpected) return Error("answered \"" + text + "\"");
  return Done{};
}

}  // namespace gpumeter
