#include "base/peer_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <string>
#include <system_error>

#include "base/text.hpp"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

namespace gpumeter {
namespace {

// Sets errno if there is none. A peer that has ended has none either: only a kernel without the option makes
// the number the answer.
Descriptor process_of(int connection, int pid) {
  int number = -1;
  socklen_t size = sizeof number;
  if (getsockopt(connection, SOL_SOCKET, SO_PEERPIDFD, &number, &size) == 0) return Descriptor(number);
  if (errno != ENOPROTOOPT) return {};
  return Descriptor(static_cast<int>(syscall(SYS_pidfd_open, pid, 0U)));
}

std::string start_of(const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 4096> bytes{};
  const ssize_t size = file ? read(file.number(), bytes.data(), bytes.size()) : -1;
  return {bytes.data(), size > 0 ? static_cast<std::size_t>(size) : 0};
}

}  // namespace

std::vector<int> numbers_in_namespaces(std::string_view status) {
  constexpr std::string_view kKey = "NSpid:";
  constexpr std::size_t kMostNamespaces = 32;  // MAX_PID_NS_LEVEL of the kernel
  std::vector<int> numbers;
  while (!status.empty()) {
    std::string_view line = take_until(status, '\n');
    if (!line.starts_with(kKey)) continue;
    line.remove_prefix(kKey.size());
    while (numbers.size() <= kMostNamespaces) {
      line = trimmed(line);
      const auto number = take_number<int>(line);
      if (!number || *number < 1) return numbers;
      numbers.push_back(*number);
    }
    return numbers;
  }
  return numbers;
}

// A pidfd is readable once its process has ended.
bool is_alive(const Descriptor& pidfd) {
  pollfd ended{pidfd.number(), POLLIN, 0};
  return poll(&ended, 1, 0) == 0;
}

Result<PeerProcess> PeerProcess::of(int connection) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return Error("SO_PEERCRED: " + std::generic_category().message(errno));
  }
  PeerProcess process;
  process.pid_ = peer.pid;
  process.uid_ = peer.uid;
  process.process_ = process_of(connection, peer.pid);
  process.has_ended_ = !process.process_ && (errno == ESRCH || errno == EINVAL);
  return process;
}

// The fdinfo of a pidfd is the daemon's own, so no mount option of /proc hides it.
Result<std::vector<int>> PeerProcess::numbers() const {
  if (pid_ <= 0) return Error("the process that connected is outside the daemon's pid namespace");
  if (!is_alive()) return Error("the process that connected has ended, so the daemon cannot identify it");
  const std::string path = process_ ? "/proc/self/fdinfo/" + std::to_string(process_.number())
                                    : "/proc/" + std::to_string(pid_) + "/status";
  std::vector<int> numbers = numbers_in_namespaces(start_of(path));
  if (numbers.empty())
    return Error("the daemon cannot read the pid namespaces of the process that connected: " + path);
  return numbers;
}

bool PeerProcess::is_alive() const { return process_ ? gpumeter::is_alive(process_) : !has_ended_; }

}  // namespace gpumeter
