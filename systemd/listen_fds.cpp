#include "systemd/listen_fds.hpp"

#include <sys/socket.h>
#include <systemd/sd-daemon.h>

#include <cstdlib>
#include <cstring>
#include <utility>

namespace gpumeter::systemd {
namespace {

constexpr int kListening = 1;
constexpr int kEither = -1;

/// The names of the descriptors that were passed; sd_listen_fds_with_names() gives an array of C strings
/// that is the caller's.
std::vector<std::string> take_names(int& count) {
  char** names = nullptr;
  constexpr int kUnsetEnvironment = 1;
  count = sd_listen_fds_with_names(kUnsetEnvironment, &names);
  std::vector<std::string> result;
  for (int i = 0; i < count && names != nullptr; ++i) {
    result.emplace_back(names[i]);
    std::free(names[i]);
  }
  std::free(names);
  return result;
}

PassedSocket::Kind kind_of(int fd) {
  if (sd_is_socket(fd, AF_UNSPEC, SOCK_STREAM, kListening) > 0) return PassedSocket::Kind::listening_stream;
  if (sd_is_socket(fd, AF_UNSPEC, SOCK_DGRAM, kEither) > 0) return PassedSocket::Kind::datagram;
  return PassedSocket::Kind::other;
}

}  // namespace

std::variant<PassedSockets, std::string> take_passed_sockets() {
  int count = 0;
  const std::vector<std::string> names = take_names(count);
  if (count < 0) return std::string("socket activation: ") + std::strerror(-count);
  PassedSockets sockets;
  int fd = SD_LISTEN_FDS_START;
  for (const std::string& name : names) {
    const bool is_unix = sd_is_socket(fd, AF_UNIX, 0, kEither) > 0;
    (name == kJobsName ? sockets.jobs : sockets.http).push_back({fd, name, kind_of(fd), is_unix});
    ++fd;
  }
  return sockets;
}

std::string http_complaint(const std::vector<PassedSocket>& sockets) {
  if (sockets.empty()) return "no socket activation file descriptors found";
  for (const PassedSocket& socket : sockets) {
    if (socket.kind == PassedSocket::Kind::listening_stream) continue;
    return "socket activation file descriptor " + std::to_string(socket.fd) + " (" + socket.name +
           ") is not a listening stream socket";
  }
  return {};
}

}  // namespace gpumeter::systemd
