#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "exporter/listen/socket.hpp"

namespace gpumeter {

/// The sockets of an address. `notes` are for the log: addresses that this machine does not have.
struct Listening {
  std::vector<ListenSocket> sockets;
  std::vector<std::string> notes;
};

/// Listens on `address` as written in config and flags. The forms are "localhost:10478" (both families),
/// ":10478" and "[::]:10478" (every address of both families), "0.0.0.0:1", "[::1]:9", "host:9" (all
/// addresses of that name), "unix:/run/x.sock" (an absolute path). Returns an Error unless all sockets can be
/// opened, for example if a port is in use. Addresses and families that this machine lacks are skipped if any
/// others remain. With port 0 all sockets get the port that the kernel chose for the first. May query a name
/// server for names other than localhost.
Result<Listening> listen_on(std::string_view address);

/// True if a client that connects to `address`, written as above, reaches one of these sockets. False for
/// names other than localhost, because only a name server can resolve them.
bool is_served(std::string_view address, std::span<const ListenSocket> sockets);

}  // namespace gpumeter
