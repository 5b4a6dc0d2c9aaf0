#include "systemd/listen_fds.hpp"

#include <sys/socket.h>
#include <systemd/sd-daemon.h>

#include <cstdlib>
#include <cstring>

namespace gpumeter::systemd {
namespace {

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

}  // namespace

bool has_listen_sockets() noexcept {
  constexpr int kKeepEnvironment = 0;
  return sd_listen_fds(kKeepEnvironment) > 0;
}

std::variant<std::vector<ListenSocket>, std::string> take_listen_sockets() {
  int count = 0;
  std::vector<std::string> names = take_names(count);
  if (count < 0) return std::string("socket activation: ") + std::strerror(-count);
  if (count == 0) return std::string("no socket activation file descriptors found");
  std::vector<ListenSocket> sockets;
  for (int fd = SD_LISTEN_FDS_START; fd < SD_LISTEN_FDS_START + count; ++fd) {
    std::string& name = names.at(sockets.size());
    constexpr int kListening = 1;
    if (sd_is_socket(fd, AF_UNSPEC, SOCK_STREAM, kListening) <= 0) {
      return "socket activation file descriptor " + std::to_string(fd) + " (" + name +
             ") is not a listening stream socket";
    }
    sockets.push_back({fd, std::move(name)});
  }
  return sockets;
}

}  // namespace gpumeter::systemd
