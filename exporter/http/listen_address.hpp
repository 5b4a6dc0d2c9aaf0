#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "exporter/http/listen_socket.hpp"

namespace gpumeter {

/// What an address came to. `notes` are for the log: the addresses that this machine does not have.
struct Listening {
  std::vector<ListenSocket> sockets;
  std::vector<std::string> notes;
};

/// Listens on `address` as written in config and flags: "localhost:10478" (both families), ":10478" and
/// "[::]:10478" (every address of both families), "0.0.0.0:1", "[::1]:9", "host:9" (all addresses of that
/// name). All of it or an Error, as for a port in use; only addresses and families that this machine does not
/// have are left out, if any others remain. With port 0 all sockets get the port that the first was given.
/// May ask a name server, for names other than localhost.
Result<Listening> listen_on(std::string_view address);

/// Whether a client that asks at `address`, written as above, reaches one of these sockets. False for names
/// other than localhost, which only a name server knows.
bool is_served(std::string_view address, std::span<const ListenSocket> sockets);

}  // namespace gpumeter
