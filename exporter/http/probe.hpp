#pragma once

#include <chrono>
#include <functional>
#include <utility>

#include "base/descriptor.hpp"
#include "base/result.hpp"

namespace gpumeter {

/// Requests /-/healthy from one of an HTTP server's threads through a socket pair. The probe bypasses the
/// listening socket's queue and the clients' connections, so clients cannot delay the answer.
class HttpProbe {
 public:
  /// Takes ownership of a descriptor and serves it as an accepted connection; returns false on failure.
  using Serve = std::function<bool(int descriptor)>;

  /// Sends the request. The descriptor passed to `serve` is congruent to `remainder` modulo `divisor`:
  /// libmicrohttpd chooses the thread by the descriptor's number.
  static Result<HttpProbe> ask(const Serve& serve, unsigned remainder, unsigned divisor);

  /// Returns an Error if no answer with status 200 arrives by `deadline`. Blocks until `deadline` at most.
  Result<Done> answer(std::chrono::steady_clock::time_point deadline) const;

 private:
  explicit HttpProbe(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}

  Descriptor descriptor_;
};

}  // namespace gpumeter
