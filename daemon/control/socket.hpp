#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <chrono>
#include <string>
#include <string_view>

#include "base/descriptor.hpp"
#include "base/result.hpp"

/// The daemon's control socket, `control.sock` in the state folder. A request is one line, and so is the
/// answer: `forget UUID` is answered by `ok` or `error TEXT`.
namespace gpumeter::control {

inline constexpr std::string_view kForget = "forget ";
inline constexpr std::string_view kOk = "ok";
inline constexpr std::string_view kError = "error ";

/// The longest line; a longer one ends the connection.
inline constexpr std::size_t kMostBytes = 4096;

/// The limit for each read and write of a connection.
inline constexpr std::chrono::seconds kPatience{2};

std::string path_in(const std::string& folder);
/// Returns an Error if the path is too long for a socket's address.
Result<sockaddr_un> address_in(const std::string& folder);

/// Returns a stream socket that no program started by this process inherits.
Result<Descriptor> open_socket();

/// Limits reads and writes to kPatience each.
void limit_time(const Descriptor& connection) noexcept;

/// Reads up to the first line feed, which is not returned.
Result<std::string> read_line(const Descriptor& connection);
Result<Done> write_line(const Descriptor& connection, const std::string& line);

/// For a command of the administrator that was refused: unless it runs as root, root may succeed.
Error with_advice(const Error& error);

}  // namespace gpumeter::control
