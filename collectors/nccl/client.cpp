#include "collectors/nccl/client.hpp"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/text.hpp"

namespace gpumeter::nccl {
namespace {

constexpr std::size_t kChunk = 64U << 10U;
constexpr std::size_t kLongestLine = 256;  // of an answer other than the document

Error error_of(int number) { return Error(std::generic_category().message(number)); }

struct Address {
  sockaddr_storage bytes{};
  socklen_t length = 0;
};

Address loopback(int family, std::uint16_t port) {
  Address address;
  if (family == AF_INET6) {
    sockaddr_in6 ip{};
    ip.sin6_family = AF_INET6;
    ip.sin6_port = htons(port);
    ip.sin6_addr = in6addr_loopback;
    std::memcpy(&address.bytes, &ip, address.length = sizeof ip);
  } else {
    sockaddr_in ip{};
    ip.sin_family = AF_INET;
    ip.sin_port = htons(port);
    ip.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    std::memcpy(&address.bytes, &ip, address.length = sizeof ip);
  }
  return address;
}

}  // namespace

Result<std::string> RasClient::status(int family, std::uint16_t port) {
  if (Result<Done> connected = connect(family, port); !connected) return connected.error();
  if (Result<Done> sent = send("SET FORMAT json\n"); !sent) return sent.error();
  std::string line;
  if (Result<Done> read = read_line(line); !read) return read.error();
  if (line != "OK") return Error("no JSON: " + readable(line, [](char32_t code) { return code < U' '; }));
  if (Result<Done> sent = send("STATUS\n"); !sent) return sent.error();
  while (true) {
    const Result<std::size_t> count = receive();
    if (!count) return count.error();
    if (*count == 0) return std::move(received_);
  }
}

Result<Done> RasClient::connect(int family, std::uint16_t port) {
  socket_ = Descriptor(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket_) return error_of(errno);
  const Address address = loopback(family, port);
  const auto* bytes = reinterpret_cast<const sockaddr*>(&address.bytes);
  if (::connect(socket_.number(), bytes, address.length) == 0) return Done{};
  if (errno != EINPROGRESS) return error_of(errno);
  if (Result<Done> ready = wait(POLLOUT); !ready) return ready;
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(socket_.number(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) return error_of(error);
  return Done{};
}

Result<Done> RasClient::wait(short events) {
  constexpr Nanoseconds kMillisecond = std::chrono::milliseconds(1);
  const Nanoseconds left = deadline_ - clock_.monotonic();
  if (left <= Nanoseconds(0)) return Error("no answer in time");
  std::array<pollfd, 2> waiting = {{{socket_.number(), events, 0}, {waker_, POLLIN, 0}}};
  const int ready = ::poll(waiting.data(), waiting.size(), static_cast<int>(left / kMillisecond) + 1);
  if (ready < 0 && errno != EINTR) return error_of(errno);
  if (waiting[1].revents != 0) return Error("the daemon stops");
  return Done{};  // the caller tries again, also after a timeout or a signal
}

Result<Done> RasClient::send(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::send(socket_.number(), text.data(), text.size(), MSG_NOSIGNAL);
    if (count < 0 && errno != EAGAIN && errno != EINTR) return error_of(errno);
    text.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    if (text.empty()) break;
    if (Result<Done> ready = wait(POLLOUT); !ready) return ready;
  }
  return Done{};
}

Result<Done> RasClient::read_line(std::string& line) {
  std::size_t end = 0;
  while ((end = received_.find('\n')) == std::string::npos) {
    if (received_.size() > kLongestLine) return Error("not NCCL's protocol");
    const Result<std::size_t> count = receive();
    if (!count) return count.error();
    if (*count == 0) return Error("the connection was closed");
  }
  line = trimmed(std::string_view(received_).substr(0, std::min(end, kLongestLine)));
  received_.erase(0, end + 1);
  return Done{};
}

Result<std::size_t> RasClient::receive() {
  while (true) {
    const std::size_t end = received_.size();
    if (end > limits_.most_bytes) return Error("the answer is too long");
    received_.resize(end + kChunk);
    const ssize_t count = ::recv(socket_.number(), received_.data() + end, kChunk, 0);
    const int error = errno;
    received_.resize(end + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    if (count >= 0 && clock_.monotonic() < deadline_) return static_cast<std::size_t>(count);
    if (count < 0 && error != EAGAIN && error != EINTR) return error_of(error);
    if (Result<Done> ready = wait(POLLIN); !ready) return ready.error();
  }
}

}  // namespace gpumeter::nccl
