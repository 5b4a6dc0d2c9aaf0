#pragma once

#include <string>
#include <variant>
#include <vector>

namespace gpumeter::systemd {

/// A listening socket that systemd made and now belongs to the caller.
struct ListenSocket {
  int fd = -1;       ///< close-on-exec is set
  std::string name;  ///< FileDescriptorName= of the socket unit
  bool operator==(const ListenSocket&) const = default;
};

/// Whether systemd made sockets for this process; false once they are taken.
bool has_listen_sockets() noexcept;

/// The sockets of socket activation (sd_listen_fds(3)), or in words why they cannot be used: there are
/// none, or one is not a listening stream socket. Takes them out of the environment: call it once, before
/// there are threads.
std::variant<std::vector<ListenSocket>, std::string> take_listen_sockets();

}  // namespace gpumeter::systemd
