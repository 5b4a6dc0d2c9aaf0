#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <utility>

#include "base/descriptor.hpp"
#include "base/result.hpp"

namespace gpumeter {

/// Where a listener can be reached.
struct Endpoint {
  sockaddr_storage address{};
  socklen_t length = 0;

  /// "127.0.0.1:10478", "[::1]:10478", "unix:/run/x.sock".
  std::string text() const;
  /// 0 for a unix socket.
  std::uint16_t port() const noexcept;
  /// Only this machine can connect.
  bool is_local() const noexcept;
};

/// A bound and listening socket, closed at the end unless released.
class ListenSocket {
 public:
  /// Takes over a socket that listens already, as systemd passes one.
  static Result<ListenSocket> adopt(int descriptor);
  /// Binds, with the address in the error. Port 0: the kernel chooses, endpoint() tells. `is_absent`: whether
  /// the error is that this machine lacks the address or its family.
  static Result<ListenSocket> open(const Endpoint& endpoint, bool& is_absent);

  const Endpoint& endpoint() const noexcept { return endpoint_; }
  int descriptor() const noexcept { return descriptor_.number(); }
  int release() noexcept { return descriptor_.release(); }

 private:
  explicit ListenSocket(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}

  Descriptor descriptor_;
  Endpoint endpoint_;
};

}  // namespace gpumeter
