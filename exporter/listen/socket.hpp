#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/descriptor.hpp"
#include "base/result.hpp"
#include "base/socket_file.hpp"

namespace gpumeter {

/// sockaddr_un(7): 108 bytes with the NUL.
inline constexpr std::size_t kLongestSocketPath = 107;

/// The address of a listener.
struct Endpoint {
  sockaddr_storage address{};
  socklen_t length = 0;

  /// The address of a Unix socket; `path` has at most kLongestSocketPath bytes.
  static Endpoint of_path(std::string_view path) noexcept;

  /// "127.0.0.1:10478", "[::1]:10478", "unix:/run/x.sock".
  std::string text() const;
  /// 0 for a unix socket.
  std::uint16_t port() const noexcept;
  bool is_unix() const noexcept { return address.ss_family == AF_UNIX; }
  /// True if only this machine can connect.
  bool is_local() const noexcept;
};

/// A bound and listening socket; the destructor closes it unless it was released. It also removes the file of
/// a Unix socket that open() made, after a release as well.
class ListenSocket {
 public:
  /// Takes ownership of a socket that already listens, such as one passed by systemd.
  static Result<ListenSocket> adopt(int descriptor);
  /// Binds and listens; the Error names the address. With port 0 the kernel chooses the port, see endpoint().
  /// The file of a Unix socket permits every user to connect; a file left by an ended process is replaced.
  /// Sets `is_absent` to whether the call failed because this machine lacks the address or its family.
  static Result<ListenSocket> open(const Endpoint& endpoint, bool& is_absent);

  const Endpoint& endpoint() const noexcept { return endpoint_; }
  int descriptor() const noexcept { return descriptor_.number(); }
  int release() noexcept { return descriptor_.release(); }

 private:
  explicit ListenSocket(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}

  static Result<ListenSocket> open_file(const Endpoint& endpoint, Descriptor descriptor);

  SocketFile file_;  ///< the descriptor is closed first
  Descriptor descriptor_;
  Endpoint endpoint_;
};

}  // namespace gpumeter
