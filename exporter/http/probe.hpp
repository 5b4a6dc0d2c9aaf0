#pragma once

#include <chrono>
#include <functional>
#include <utility>

#include "base/descriptor.hpp"
#include "base/result.hpp"

namespace gpumeter {

/// One of an HTTP server's threads is asked for /-/healthy through a socket pair. Neither the listening
/// socket's queue nor the connections of clients are in between, so that clients cannot keep the answer away.
class HttpProbe {
 public:
  /// Takes over a descriptor and serves it as an accepted connection; false if it cannot.
  using Serve = std::function<bool(int descriptor)>;

  /// Sends the request. The descriptor that `serve` gets is congruent to `remainder` modulo `divisor`: by its
  /// number libmicrohttpd chooses the thread.
  static Result<HttpProbe> ask(const Serve& serve, unsigned remainder, unsigned divisor);

  /// An Error if the answer by then is not 200. Blocks until `deadline` at the most.
  Result<Done> answer(std::chrono::steady_clock::time_point deadline) const;

 private:
  explicit HttpProbe(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}

  Descriptor descriptor_;
};

}  // namespace gpumeter
