#include "collectors/attribution/grpc/call.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <system_error>
#include <utility>

namespace gpumeter::grpc {
namespace {

constexpr std::size_t kPiece = 16U << 10U;  // a frame of HTTP/2

int milliseconds_until(Nanoseconds deadline, const Clock& clock) noexcept {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - clock.monotonic());
  constexpr std::int64_t kLongest = 3'600'000;
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, kLongest));
}

Answer finish(Call& call, Nanoseconds deadline, int waker) {
  Answer answer;
  while (true) {
    switch (call.wait(deadline, waker)) {
      case Call::Event::message:
        answer.message = call.take_message();
        break;
      case Call::Event::end:
        answer.outcome = call.outcome();
        answer.is_absent = call.is_absent();
        return answer;
      default:
        answer.outcome = {Failure::timeout, "no answer in time"};
        return answer;
    }
  }
}

}  // namespace

Call::Call(const std::string& socket, Request request, const Clock& clock)
    : clock_(clock), stream_(std::move(request)) {
  connect_to(socket);
}

Call::Call(Descriptor socket, Request request, const Clock& clock)
    : clock_(clock), stream_(std::move(request)), socket_(std::move(socket)) {}

// connect() to a Unix socket ends at once: EAGAIN if the server's queue is full.
void Call::connect_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return fail(ENAMETOOLONG);
  path.copy(address.sun_path, path.size());
  socket_ = Descriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket_) return fail(errno);
  const auto* const any = reinterpret_cast<const sockaddr*>(&address);
  if (connect(socket_.number(), any, sizeof address) == 0) return;
  is_absent_ = errno == ENOENT || errno == ENOTDIR;
  fail(errno);
}

void Call::fail(int error) { stream_.end({Failure::unavailable, std::generic_category().message(error)}); }

Call::Event Call::wait(Nanoseconds deadline, int waker) {
  while (true) {
    if (!message_) message_ = stream_.take_message();
    if (message_) return Event::message;
    flush();
    if (stream_.has_ended()) return Event::end;
    const short events = unsent_.empty() ? POLLIN : POLLIN | POLLOUT;
    std::array<pollfd, 2> polled = {{{socket_.number(), events, 0}, {waker, POLLIN, 0}}};
    const int ready = poll(polled.data(), polled.size(), milliseconds_until(deadline, clock_));
    if (ready < 0 && errno != EINTR) fail(errno);
    if (ready <= 0 && clock_.monotonic() >= deadline) return Event::deadline;
    if (ready <= 0) continue;
    if (polled[1].revents != 0) return Event::woken;
    // A server that sends without a pause must not hold the caller beyond its deadline.
    if (clock_.monotonic() >= deadline) return Event::deadline;
    if ((polled[0].revents & ~POLLOUT) != 0) receive();
  }
}

std::string Call::take_message() { return std::exchange(message_, std::nullopt).value_or(""); }

void Call::flush() {
  if (stream_.has_ended()) return;
  if (unsent_.empty()) unsent_ = stream_.take_output();
  while (!unsent_.empty()) {
    const ssize_t sent = send(socket_.number(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      unsent_.erase(0, static_cast<std::size_t>(sent));
      continue;
    }
    if (errno == ECONNREFUSED) return fail(errno);  // the end of a connect() that was under way
    // After EPIPE, the server's last words may still wait; receive() finds the end of the connection.
    if (errno != EAGAIN && errno != EINTR) unsent_.clear();
    return;
  }
}

void Call::receive() {
  std::array<char, kPiece> piece;
  const ssize_t size = recv(socket_.number(), piece.data(), piece.size(), 0);
  if (size > 0) return stream_.feed({piece.data(), static_cast<std::size_t>(size)});
  if (size == 0) return stream_.end({Failure::unavailable, "the server closed the connection"});
  if (errno != EAGAIN && errno != EINTR) fail(errno);
}

Answer ask(const std::string& socket, Request request, const Clock& clock, Nanoseconds deadline, int waker) {
  Call call(socket, std::move(request), clock);
  return finish(call, deadline, waker);
}

Answer ask(Descriptor socket, Request request, const Clock& clock, Nanoseconds deadline, int waker) {
  Call call(std::move(socket), std::move(request), clock);
  return finish(call, deadline, waker);
}
}  // namespace gpumeter::grpc
