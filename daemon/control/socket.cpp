#include "daemon/control/socket.hpp"

#include <sys/time.h>

#include <cerrno>
#include <cstring>

namespace gpumeter::control {
namespace {

Error failed(const std::string& what) { return Error(what + ": " + std::strerror(errno)); }

}  // namespace

std::string path_in(const std::string& folder) { return folder + "/control.sock"; }

Result<sockaddr_un> address_in(const std::string& folder) {
  const std::string path = path_in(folder);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return Error(path + ": is too long for a socket");
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

Result<Descriptor> open_socket() {
  Descriptor opened(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!opened) return failed("socket");
  return opened;
}

void limit_time(const Descriptor& connection) noexcept {
  const timeval limit{kPatience.count(), 0};
  setsockopt(connection.number(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(connection.number(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

Result<std::string> read_line(const Descriptor& connection) {
  std::string line;
  char byte = 0;
  while (line.size() < kMostBytes) {
    const ssize_t got = recv(connection.number(), &byte, 1, 0);
    if (got < 0) return failed("no answer");
    if (got == 0) return Error("the connection ended without an answer");
    if (byte == '\n') return line;
    line += byte;
  }
  return Error("a line is too long");
}

Result<Done> write_line(const Descriptor& connection, const std::string& line) {
  const std::string text = line + "\n";
  const ssize_t sent = send(connection.number(), text.data(), text.size(), MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(text.size())) return failed("cannot be sent");
  return Done{};
}

Error with_advice(const Error& error) {
  return geteuid() == 0 ? error : Error(error.message() + "; run it as root");
}

}  // namespace gpumeter::control
