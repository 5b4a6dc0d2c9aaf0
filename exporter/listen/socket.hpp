#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/descriptor.hpp"
#include "base/folder.hpp"
#include "base/result.hpp"
#include "base/users.hpp"

namespace gpumeter {

/// sockaddr_un(7): 108 bytes with the NUL.
inline constexpr std::size_t kLongestSocketPath = 107;

/// The address of a listener.
struct Endpoint {
  sockaddr_storage address{};
  socklen_t length = 0;

  /// The address of a Unix socket; `path` has at most kLongestSocketPath bytes.
  static Endpoint of_path(std::string_view path) noexcept;

  /// "127.0.0.1:10478", "[::1]:10478", "unix:/run/x.sock", "vsock::10478".
  std::string text() const;
  /// 0 if it is not an address of the internet.
  std::uint16_t port() const noexcept;
  bool is_unix() const noexcept { return address.ss_family == AF_UNIX; }
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
  /// A Unix socket to which only root, this process's user and its group may connect.
  static Result<ListenSocket> open_private(const std::string& path);

  const Endpoint& endpoint() const noexcept { return endpoint_; }
  int descriptor() const noexcept { return descriptor_.number(); }
  int release() noexcept { return descriptor_.release(); }
  bool is_private() const noexcept { return is_private_; }

 private:
  explicit ListenSocket(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}

  static Result<ListenSocket> open_file(const Endpoint& endpoint, Descriptor descriptor, mode_t mode);

  SocketFile file_;  ///< the descriptor is closed first
  Descriptor descriptor_;
  Endpoint endpoint_;
  bool is_private_ = false;
};

/// The sockets of an address. `notes` are for the log: addresses that this machine does not have.
struct Listening {
  std::vector<ListenSocket> sockets;
  std::vector<std::string> notes;
};

/// True for a text such as "localhost:10478", "192.0.2.1:1", "[::1]:9" or ":10478". listen_on() finds hosts
/// that do not exist.
bool is_host_and_port(std::string_view address);

/// Listens on `address` as written in config and flags. The forms are "localhost:10478" (both families),
/// ":10478" and "[::]:10478" (every address of both families), "0.0.0.0:1", "[::1]:9", "host:9" (all
/// addresses of that name), "unix:/run/x.sock" (an absolute path), "vsock::9" (base/vsock.hpp). Returns an
/// Error unless all sockets can be opened, for example if a port is in use. Addresses and families that this
/// machine lacks are skipped if any others remain. With port 0 all sockets get the port that the kernel chose
/// for the first. May query a name server for names other than localhost.
Result<Listening> listen_on(std::string_view address);

/// True if a client that connects to `address`, written as above, reaches one of these sockets. False for
/// names other than localhost, because only a name server can resolve them.
bool is_served(std::string_view address, std::span<const ListenSocket> sockets);

/// The other end of an accepted connection, as far as limits distinguish clients: an address, or the owner
/// of the process at the other end of a Unix socket.
struct Peer {
  /// An IPv4 address, the first 64 bits of an IPv6 address (one subscriber usually has them), the number of
  /// the user who pays (base/users.hpp), or a virtual machine's CID, which its host vouches for.
  std::string key;
  bool is_remote = false;  ///< on another machine
  auto operator<=>(const Peer&) const = default;

  /// `address` may be null. For a Unix socket, the kernel names the user at the other end of `descriptor`,
  /// and `owners` who owns that uid; null: each uid is its own.
  static Peer of(const sockaddr* address, int descriptor, const UserOwners* owners = nullptr);
  static Peer of_uid(std::uint32_t uid, const UserOwners* owners);
};

}  // namespace gpumeter
