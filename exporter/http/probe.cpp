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

/// The same socket under a number with that remainder; empty if no number is left.
Descriptor renumbered(Descriptor descriptor, unsigned remainder, unsigned divisor) {
  while (descriptor && static_cast<unsigned>(descriptor.number()) % divisor != remainder) {
    descriptor = Descriptor(fcntl(descriptor.number(), F_DUPFD_CLOEXEC, descriptor.number() + 1));
  }
  return descriptor;
}

}  // namespace

Result<HttpProbe> HttpProbe::ask(const Serve& serve, unsigned remainder, unsigned divisor,
                                 const TlsLoopback* tls) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) return last_error();
  HttpProbe probe{Descriptor(ends[0])};
  Descriptor served = renumbered(Descriptor(ends[1]), remainder, divisor);
  if (!served) return last_error();
  if (tls != nullptr) {
    auto client = TlsLoopbackClient::begin(*tls, probe.descriptor_.number());
    if (!client) return client.error();
    probe.tls_ = *std::move(client);
  } else if (send(probe.descriptor_.number(), kRequest.data(), kRequest.size(), MSG_NOSIGNAL) !=
             static_cast<ssize_t>(kRequest.size())) {
    return last_error();
  }
  if (!serve(served.release())) return Error("the server did not accept the connection");
  return probe;
}

Result<Done> HttpProbe::answer(Deadline deadline) const {
  const Result<std::string> text = tls_ == nullptr ? receive(deadline) : exchange(deadline);
  if (!text) return text.error();
  if (*text != kExpected) return Error("answered \"" + *text + "\"");
  return Done{};
}

Result<std::string> HttpProbe::exchange(Deadline deadline) const {
  const auto wait = [&] { return is_readable(descriptor_.number(), deadline); };
  return tls_->exchange(kRequest, kExpected.size(), wait);
}

Result<std::string> HttpProbe::receive(Deadline deadline) const {
  std::string text(kExpected.size(), '\0');
  std::size_t have = 0;
  while (have < text.size()) {
    if (!is_readable(descriptor_.number(), deadline)) return Error("no answer before the deadline");
    const ssize_t got = recv(descriptor_.number(), text.data() + have, text.size() - have, 0);
    if (got < 0) return last_error();
    if (got == 0) break;
    have += static_cast<std::size_t>(got);
  }
  text.resize(have);
  return text;
}

}  // namespace gpumeter
