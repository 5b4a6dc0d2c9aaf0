#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/descriptor.hpp"
#include "base/result.hpp"

namespace gpumeter {

/// True if the descriptor is ready for `events` (poll(2)) before the deadline.
bool is_ready(const Descriptor& descriptor, short events, std::chrono::steady_clock::time_point deadline);

/// A TLS connection as a client over a connected socket that does not block. One thread at a time.
class TlsStream {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  /// Makes the handshake. The server's certificate must be for `host`, a name or a number, and from an
  /// authority of `ca_file`; without one, of the system's. The Error says what is wrong with it. `socket`
  /// must outlive the stream.
  static Result<std::unique_ptr<TlsStream>> open(const Descriptor& socket, const std::string& host,
                                                 const std::string& ca_file, Deadline deadline);
  ~TlsStream();

  Result<Done> send(std::string_view text, Deadline deadline);
  /// Waits for bytes and returns their number, 0 at the end.
  Result<std::size_t> receive(char* bytes, std::size_t size, Deadline deadline);

 private:
  struct Parts;
  explicit TlsStream(std::unique_ptr<Parts> parts);

  const std::unique_ptr<Parts> parts_;
};

}  // namespace gpumeter
