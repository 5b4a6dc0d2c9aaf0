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

/// Returns the names of the passed descriptors. The caller of sd_listen_fds_with_names() must free its array
/// of C strings.
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

Result<PassedSockets> take_passed_sockets() {
  int count = 0;
  const std::vector<std::string> names = take_names(count);
  if (count < 0) return Error(std::string("socket activation: ") + std::strerror(-count));
  PassedSockets sockets;
  int fd = SD_LISTEN_FDS_START;
  for (const std::string& name : names) {
    const bool is_unix = sd_is_socket(fd, AF_UNIX, 0, kEither) > 0;
    (name == kJobsName ? sockets.jobs : sockets.http).push_back({fd, name, kind_of(fd), is_unix});
    ++fd;
  }
  return sockets;
}

Result<Done> check_http(const std::vector<PassedSocket>& sockets) {
  if (sockets.empty()) return Error("no socket activation file descriptors found");
  for (const PassedSocket& socket : sockets) {
    if (socket.kind == PassedSocket::Kind::listening_stream) continue;
    return Error("socket activation file descriptor " + std::to_string(socket.fd) + " (" + socket.name +
                 ") is not a listening stream socket");
  }
  return Done{};
}

}  // namespace gpumeter::systemd
