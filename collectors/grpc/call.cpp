#include "collectors/grpc/call.hpp"

#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>
#include <system_error>
#include <utility>

#include "base/text.hpp"

namespace gpumeter::grpc {
namespace {

// google/rpc/code.proto
constexpr unsigned kOk = 0;
constexpr unsigned kDeadlineExceeded = 4;
constexpr unsigned kResourceExhausted = 8;
constexpr unsigned kFailedPrecondition = 9;
constexpr unsigned kUnimplemented = 12;
constexpr unsigned kUnavailable = 14;

constexpr std::size_t kLongestMessage = 200;

Failure failure_of(unsigned status) noexcept {
  switch (status) {
    case kOk:
      return Failure::none;
    case kDeadlineExceeded:
      return Failure::timeout;
    case kResourceExhausted:
      return Failure::rate_limited;
    case kFailedPrecondition:
    case kUnavailable:
      return Failure::not_ready;
    case kUnimplemented:
      return Failure::unimplemented;
    default:
      return Failure::refused;
  }
}

constexpr std::size_t kPrefix = 5;  // one byte: compressed or not; four bytes: the length, big-endian
constexpr std::size_t kLongestValue = 1024;

// Flow control: the default of 65 535 bytes is a round trip for each 64 KiB.
constexpr std::uint32_t kWindow = 1U << 20U;
constexpr std::uint32_t kMostHeaderBytes = 16U << 10U;

std::string prefixed(const std::string& message) {
  std::string body(1, '\0');
  for (const unsigned shift : {24U, 16U, 8U, 0U}) {
    body += static_cast<char>((message.size() >> shift) & 0xFFU);
  }
  return body + message;
}

std::string_view view_of(const std::uint8_t* bytes, std::size_t size) noexcept {
  return {reinterpret_cast<const char*>(bytes), size};
}

nghttp2_nv header(std::string_view name, std::string_view value) noexcept {
  // nghttp2 copies both and does not write to them.
  const auto bytes = [](std::string_view text) {
    return const_cast<std::uint8_t*>(reinterpret_cast<const std::uint8_t*>(text.data()));
  };
  return {bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};
}

Outcome malformed(const std::string& what) { return {Failure::malformed, what}; }

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

Outcome outcome_of(unsigned status, std::string_view message) {
  const Failure failure = failure_of(status);
  if (failure == Failure::none) return {};
  const std::string text = readable(first_bytes(message, kLongestMessage), is_control);
  return {failure, "status " + std::to_string(status) + (text.empty() ? "" : ": " + text)};
}

// Functions that libnghttp2 calls. No exception may pass through C.
struct Stream::Callbacks {
  static Stream& self(void* user) noexcept { return *static_cast<Stream*>(user); }

  static int on_data(nghttp2_session*, std::uint8_t, std::int32_t, const std::uint8_t* data, std::size_t size,
                     void* user) noexcept {
    try {
      return self(user).take(view_of(data, size)) ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE;
    } catch (const std::bad_alloc&) {
      return NGHTTP2_ERR_NOMEM;
    } catch (...) {
      return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
  }

  // NOLINTNEXTLINE(readability-function-size): the parameters of nghttp2_on_header_callback
  static int on_header(nghttp2_session*, const nghttp2_frame*, const std::uint8_t* name,
                       std::size_t name_size, const std::uint8_t* value, std::size_t value_size, std::uint8_t,
                       void* user) noexcept {
    try {
      self(user).note_header(view_of(name, name_size), view_of(value, value_size));
      return 0;
    } catch (...) {
      return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
  }

  static int on_close(nghttp2_session*, std::int32_t, std::uint32_t error_code, void* user) noexcept {
    try {
      self(user).close(error_code);
      return 0;
    } catch (...) {
      return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
  }

  static ssize_t read_body(nghttp2_session*, std::int32_t, std::uint8_t* to, std::size_t room,
                           std::uint32_t* flags, nghttp2_data_source* source, void*) noexcept {
    Stream& stream = self(source->ptr);
    const std::size_t count = std::min(room, stream.body_.size() - stream.sent_);
    std::copy_n(stream.body_.data() + stream.sent_, count, to);
    stream.sent_ += count;
    if (stream.sent_ == stream.body_.size()) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return static_cast<ssize_t>(count);
  }

  static nghttp2_session* make_session(Stream* stream) {
    nghttp2_session_callbacks* calls = nullptr;
    if (nghttp2_session_callbacks_new(&calls) != 0) throw std::bad_alloc();
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(calls, on_data);
    nghttp2_session_callbacks_set_on_header_callback(calls, on_header);
    nghttp2_session_callbacks_set_on_stream_close_callback(calls, on_close);
    nghttp2_session* session = nullptr;
    const int error = nghttp2_session_client_new(&session, calls, stream);
    nghttp2_session_callbacks_del(calls);
    if (error != 0) throw std::bad_alloc();
    return session;
  }
};

void Stream::FreeSession::operator()(nghttp2_session* session) const noexcept {
  nghttp2_session_del(session);
}

Stream::Stream(Request request)
    : request_(std::move(request)),
      body_(prefixed(request_.message)),
      session_(Callbacks::make_session(this)) {
  const std::array<nghttp2_settings_entry, 3> settings = {
      {{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
       {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kWindow},
       {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, kMostHeaderBytes}}};
  const std::array<nghttp2_nv, 7> headers = {
      header(":method", "POST"),        header(":scheme", "http"),
      header(":path", request_.method), header(":authority", "localhost"),
      header("te", "trailers"),         header("content-type", "application/grpc"),
      header("user-agent", "gpumeter")};
  nghttp2_data_provider body{};
  body.source.ptr = this;
  body.read_callback = Callbacks::read_body;
  nghttp2_session* const session = session_.get();
  const bool is_made =
      nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings.data(), settings.size()) == 0 &&
      nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0, kWindow) == 0 &&
      nghttp2_submit_request(session, nullptr, headers.data(), headers.size(), &body, nullptr) > 0;
  if (!is_made) throw std::bad_alloc();  // the only error that these calls have
}

Stream::~Stream() = default;

std::string Stream::take_output() {
  std::string output;
  while (true) {
    const std::uint8_t* bytes = nullptr;
    const ssize_t size = nghttp2_session_mem_send(session_.get(), &bytes);
    if (size < 0) end(malformed(nghttp2_strerror(static_cast<int>(size))));
    if (size <= 0) break;
    output.append(view_of(bytes, static_cast<std::size_t>(size)));
  }
  // libnghttp2 answers a violation of the protocol with GOAWAY, and then wants no more bytes.
  if (nghttp2_session_want_read(session_.get()) == 0) end(malformed("not HTTP/2"));
  return output;
}

void Stream::feed(std::string_view bytes) {
  if (ended_) return;
  const auto* const data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  const ssize_t read = nghttp2_session_mem_recv(session_.get(), data, bytes.size());
  if (read < 0) end(malformed(nghttp2_strerror(static_cast<int>(read))));
}

void Stream::end(Outcome outcome) {
  if (std::exchange(ended_, true)) return;
  outcome_ = std::move(outcome);
}

std::optional<std::string> Stream::take_message() {
  if (messages_.empty()) return std::nullopt;
  std::string oldest = std::move(messages_.front());
  messages_.pop_front();
  return oldest;
}

// Returns false if the call has failed. A message may be split anywhere.
bool Stream::take(std::string_view bytes) {
  while (!ended_) {
    if (head_.size() < kPrefix) {
      const std::size_t count = std::min(kPrefix - head_.size(), bytes.size());
      head_ += bytes.substr(0, count);
      bytes.remove_prefix(count);
      if (head_.size() < kPrefix) return true;
      if (!finish_head()) return false;
    }
    const std::size_t count = std::min(length_ - message_.size(), bytes.size());
    message_ += bytes.substr(0, count);
    bytes.remove_prefix(count);
    if (message_.size() < length_) return true;
    if (!finish_message()) return false;
  }
  return false;
}

bool Stream::finish_head() {
  length_ = 0;
  for (std::size_t i = 1; i < kPrefix; ++i) {
    length_ = (length_ << 8U) | static_cast<std::uint8_t>(head_[i]);
  }
  if (head_.front() != '\0') end(malformed("the message is compressed"));
  if (length_ > request_.most_bytes) end(malformed("the message has " + std::to_string(length_) + " bytes"));
  return !ended_;
}

bool Stream::finish_message() {
  ++received_;
  if (request_.most_messages != 0 && received_ > request_.most_messages) {
    end(malformed("more messages than expected"));
    return false;
  }
  messages_.push_back(std::exchange(message_, {}));
  head_.clear();
  return true;
}

void Stream::note_header(std::string_view name, std::string_view value) {
  if (name == ":status") http_status_ = parse_number<unsigned>(value);
  if (name == "grpc-status") grpc_status_ = parse_number<unsigned>(value).value_or(2);  // UNKNOWN
  if (name == "grpc-message") grpc_message_ = value.substr(0, kLongestValue);
}

void Stream::close(std::uint32_t error_code) { end(verdict(error_code)); }

Outcome Stream::verdict(std::uint32_t error_code) const {
  if (grpc_status_.value_or(0) != 0) return outcome_of(*grpc_status_, grpc_message_);
  if (!grpc_status_ && http_status_.value_or(200) != 200) {
    return {Failure::unavailable, "HTTP status " + std::to_string(*http_status_)};
  }
  if (!grpc_status_ && error_code != NGHTTP2_NO_ERROR) {
    return {Failure::unavailable, std::string("the call was reset: ") + nghttp2_http2_strerror(error_code)};
  }
  if (!grpc_status_) return malformed("no grpc-status");
  if (!head_.empty()) return malformed("the last message is incomplete");
  if (request_.most_messages == 1 && received_ == 0) return malformed("no message");
  return {};
}

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
