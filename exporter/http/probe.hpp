#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/descriptor.hpp"
#include "base/result.hpp"
#include "exporter/tls/loopback.hpp"

namespace gpumeter {

/// Requests /-/healthy from one of an HTTP server's threads through a socket pair. The probe bypasses the
/// listening socket's queue and the clients' connections, so clients cannot delay the answer. If the server
/// speaks TLS, so does the probe.
class HttpProbe {
 public:
  /// Takes ownership of a descriptor and serves it as an accepted connection; returns false on failure.
  using Serve = std::function<bool(int descriptor)>;

  /// Sends the request. The descriptor passed to `serve` is congruent to `remainder` modulo `divisor`:
  /// libmicrohttpd chooses the thread by the descriptor's number. `tls` is null for plain HTTP; otherwise it
  /// must outlive the probe.
  static Result<HttpProbe> ask(const Serve& serve, unsigned remainder, unsigned divisor,
                               const TlsLoopback* tls = nullptr);

  /// Returns an Error if no answer with status 200 arrives by `deadline`. Blocks until `deadline` at most.
  Result<Done> answer(std::chrono::steady_clock::time_point deadline) const;

 private:
  using Deadline = std::chrono::steady_clock::time_point;
  explicit HttpProbe(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}
  Result<std::string> receive(Deadline deadline) const;
  Result<std::string> exchange(Deadline deadline) const;

  Descriptor descriptor_;
  std::unique_ptr<TlsLoopbackClient> tls_;  // null for plain HTTP; uses descriptor_
};

}  // namespace gpumeter
