#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "collectors/attribution/grpc/outcome.hpp"

struct nghttp2_session;

namespace gpumeter::grpc {

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

}  // namespace gpumeter::grpc
