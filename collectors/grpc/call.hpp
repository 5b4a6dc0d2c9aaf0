#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/descriptor.hpp"
#include "base/text.hpp"

struct nghttp2_session;

namespace gpumeter::grpc {

/// The reason why a call failed. The label `reason` of gpumeter_names_source_errors_total.
enum class Failure : std::uint8_t {
  none,           ///< the call succeeded, or has not ended yet
  unavailable,    ///< no socket, no permission, or the server closed the connection or reset the call
  timeout,        ///< no answer within the deadline
  rate_limited,   ///< RESOURCE_EXHAUSTED: the kubelet's limit counts the calls of all its clients
  not_ready,      ///< FAILED_PRECONDITION or UNAVAILABLE: the kubelet has just started
  unimplemented,  ///< UNIMPLEMENTED: the server lacks the method
  refused,        ///< any other status
  malformed,      ///< not HTTP/2, not gRPC, not the expected message, or longer than the limit
};
inline constexpr std::size_t kFailureCount = 8;
inline constexpr EnumNames<Failure, kFailureCount> kFailureNames = {
    {{Failure::none, "none"},
     {Failure::unavailable, "unavailable"},
     {Failure::timeout, "timeout"},
     {Failure::rate_limited, "rate_limited"},
     {Failure::not_ready, "not_ready"},
     {Failure::unimplemented, "unimplemented"},
     {Failure::refused, "refused"},
     {Failure::malformed, "malformed"}}};
constexpr std::string_view to_string(Failure failure) noexcept { return kFailureNames.of(failure); }

/// How a call ended.
struct Outcome {
  Failure failure = Failure::none;
  std::string message = {};  ///< for the log: printable, short; empty if the call succeeded

  explicit operator bool() const noexcept { return failure == Failure::none; }
  bool operator==(const Outcome&) const = default;
};

/// The outcome of a status of google.rpc.Code, with the server's message.
Outcome outcome_of(unsigned status, std::string_view message);

/// What a client asks of a server.
struct Request {
  std::string method;   ///< the path of HTTP/2: "/v1.PodResourcesLister/List"
  std::string message;  ///< serialised protobuf
  /// Longest message that is accepted, in bytes. The kubelet's own client accepts 16 MiB.
  std::size_t most_bytes = 16U << 20U;
  /// Limit on the number of messages of the answer; 0: a stream without a limit.
  std::size_t most_messages = 1;
};

/// One call on one connection (HTTP/2 without TLS, RFC 9113, and "gRPC over HTTP2"), without its socket:
/// bytes in, bytes out. libnghttp2 answers SETTINGS and PING, and ends the call at GOAWAY and RST_STREAM. Any
/// bytes from the server; at most one message of `most_bytes` is kept in addition to those of one feed(). One
/// thread.
class Stream {
 public:
  explicit Stream(Request request);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// Returns bytes for the server; empty: none for now.
  std::string take_output();

  /// Reads bytes from the server. The call may end by it.
  void feed(std::string_view bytes);

  /// The server closed the connection, or the caller gives up.
  void end(Outcome outcome);

  /// Removes and returns the oldest message that is complete.
  std::optional<std::string> take_message();

  /// True when the outcome is known. Messages may still wait.
  bool has_ended() const noexcept { return ended_; }
  const Outcome& outcome() const noexcept { return outcome_; }

 private:
  struct Callbacks;
  struct FreeSession {
    void operator()(nghttp2_session* session) const noexcept;
  };

  bool take(std::string_view bytes);
  bool finish_head();
  bool finish_message();
  void note_header(std::string_view name, std::string_view value);
  void close(std::uint32_t error_code);
  Outcome verdict(std::uint32_t error_code) const;

  const Request request_;
  std::string body_;  // the request with gRPC's prefix
  std::size_t sent_ = 0;
  std::unique_ptr<nghttp2_session, FreeSession> session_;
  std::string head_;  // of the message under way: gRPC's prefix of 5 bytes
  std::string message_;
  std::size_t length_ = 0;
  std::deque<std::string> messages_;
  std::size_t received_ = 0;  // messages
  std::optional<unsigned> http_status_;
  std::optional<unsigned> grpc_status_;
  std::string grpc_message_;
  bool ended_ = false;
  Outcome outcome_;
};

/// A call to a server on a connection of its own, to a Unix socket unless stated otherwise. The only call
/// that may block is wait(), and it has a deadline. One thread.
class Call {
 public:
  /// Connects and sends the request. `clock` must be the system's and outlive this object. A missing socket
  /// is an outcome, which wait() reports.
  Call(const std::string& socket, Request request, const Clock& clock);

  /// Sends the request on a stream socket that does not block, such as one of TCP. Its connect() may be under
  /// way.
  Call(Descriptor socket, Request request, const Clock& clock);

  enum class Event : std::uint8_t {
    message,   ///< take_message() has one
    end,       ///< outcome() holds the reason
    deadline,  ///< nothing happened in time; the call goes on
    woken,     ///< the descriptor `waker` became readable; the call goes on
  };
  /// Waits for the next event until `deadline` (CLOCK_MONOTONIC). `waker`: an eventfd, or -1.
  Event wait(Nanoseconds deadline, int waker = -1);

  /// Removes and returns the message that wait() announced.
  std::string take_message();

  const Outcome& outcome() const noexcept { return stream_.outcome(); }
  /// True if the socket does not exist.
  bool is_absent() const noexcept { return is_absent_; }

 private:
  void connect_to(const std::string& path);
  void fail(int error);
  void flush();
  void receive();

  const Clock& clock_;
  Stream stream_;
  Descriptor socket_;
  bool is_absent_ = false;
  std::string unsent_;
  std::optional<std::string> message_;
};

/// The answer to a call that has one message.
struct Answer {
  Outcome outcome;
  std::string message = {};
  bool is_absent = false;  ///< the socket does not exist
};

/// Makes a call and waits for its answer until `deadline` or until `waker` is readable, which is a timeout
/// too.
Answer ask(const std::string& socket, Request request, const Clock& clock, Nanoseconds deadline,
           int waker = -1);
Answer ask(Descriptor socket, Request request, const Clock& clock, Nanoseconds deadline, int waker = -1);

}  // namespace gpumeter::grpc
