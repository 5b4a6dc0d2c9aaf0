#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.hpp"

struct gnutls_session_int;

namespace gpumeter {

/// TLS between two ends of a socket pair within this process: an anonymous key exchange, which needs neither
/// the certificate nor a client's. The daemon's own probe therefore depends only on the threads that serve
/// it, and costs no signature. Any thread.
class TlsLoopback {
 public:
  static Result<std::unique_ptr<const TlsLoopback>> make();
  TlsLoopback(const TlsLoopback&) = delete;
  TlsLoopback& operator=(const TlsLoopback&) = delete;
  ~TlsLoopback();

  /// Prepares a server's session before its handshake. Only for descriptors that no other process can hold:
  /// the other end is not authenticated. The object must outlive the session.
  bool apply(gnutls_session_int* session) const noexcept;

 private:
  friend class TlsLoopbackClient;
  struct Parts;
  explicit TlsLoopback(std::unique_ptr<const Parts> parts);

  const std::unique_ptr<const Parts> parts_;
};

/// The client's end. One thread.
class TlsLoopbackClient {
 public:
  /// Waits until the descriptor is readable; returns false at the deadline.
  using Wait = std::function<bool()>;

  /// Sends the first message of the handshake. `descriptor` is non-blocking; it and the loopback must outlive
  /// the client.
  static Result<std::unique_ptr<TlsLoopbackClient>> begin(const TlsLoopback& loopback, int descriptor);
  TlsLoopbackClient(const TlsLoopbackClient&) = delete;
  TlsLoopbackClient& operator=(const TlsLoopbackClient&) = delete;
  ~TlsLoopbackClient();

  /// Completes the handshake, sends the request and returns the first `size` bytes of the answer, fewer if
  /// the server closes earlier.
  Result<std::string> exchange(std::string_view request, std::size_t size, const Wait& wait);

 private:
  struct Session;
  explicit TlsLoopbackClient(std::unique_ptr<Session> session);

  const std::unique_ptr<Session> session_;
};

}  // namespace gpumeter
