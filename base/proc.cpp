#include "base/proc.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <string>
#include <system_error>

#include "base/text.hpp"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

namespace gpumeter::proc {
namespace {

enum Field { kState = 3, kThreads = 20, kStart = 22 };

// The kernel escapes newlines in the name on the line before (proc(5)), so a process cannot forge this line.
constexpr std::string_view kUid = "\nUid:\t";

}  // namespace

std::string path(const std::string& procfs, int pid, std::string_view name) {
  return procfs + "/" + std::to_string(pid) + "/" + std::string(name);
}

std::string_view stat_field(std::string_view stat, int number) noexcept {
  const std::size_t name_end = stat.rfind(") ");
  if (name_end == std::string_view::npos) return {};
  stat.remove_prefix(name_end + 2);
  stat = stat.substr(0, stat.find('\n'));
  for (int before = kState; before < number; ++before) take_until(stat, ' ');
  return take_until(stat, ' ');
}

std::optional<std::uint64_t> start_ticks(std::string_view stat) noexcept {
  return parse_number<std::uint64_t>(stat_field(stat, kStart));
}

bool is_alive(std::string_view stat) noexcept {
  const std::string_view state = stat_field(stat, kState);
  if (state.empty()) return false;
  const bool has_ended = std::string_view("ZXx").find(state) != std::string_view::npos;
  return !has_ended || parse_number<int>(stat_field(stat, kThreads)).value_or(0) > 1;
}

std::optional<std::array<std::uint32_t, 4>> uids(std::string_view status) noexcept {
  const std::size_t line = status.find(kUid);
  if (line == std::string_view::npos) return std::nullopt;
  status.remove_prefix(line + kUid.size());
  std::string_view numbers = take_until(status, '\n');
  std::array<std::uint32_t, 4> found{};
  for (std::uint32_t& uid : found) {
    const auto number = parse_number<std::uint32_t>(take_until(numbers, '\t'));
    if (!number) return std::nullopt;
    uid = *number;
  }
  return found;
}

}  // namespace gpumeter::proc

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

}  // namespace

SmallFile read_small_file(const std::string& path, std::size_t most) {
  constexpr std::size_t kChunk = 64U << 10U;
  SmallFile out;
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) return {{}, errno, true};
  while (out.text.size() <= most) {
    const std::size_t end = out.text.size();
    out.text.resize(end + kChunk);
    const ssize_t count = ::read(file.number(), out.text.data() + end, kChunk);
    out.text.resize(end + static_cast<std::size_t>(count > 0 ? count : 0));
    if (count < 0) out.error = errno;
    if (count <= 0) return out;
  }
  out.is_whole = false;
  return out;
}

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
  constexpr std::size_t kMostStatus = 4096;
  const std::string path = process_ ? "/proc/self/fdinfo/" + std::to_string(process_.number())
                                    : "/proc/" + std::to_string(pid_) + "/status";
  std::vector<int> numbers = numbers_in_namespaces(read_small_file(path, kMostStatus).text);
  if (numbers.empty())
    return Error("the daemon cannot read the pid namespaces of the process that connected: " + path);
  return numbers;
}

bool PeerProcess::is_alive() const { return process_ ? gpumeter::is_alive(process_) : !has_ended_; }

}  // namespace gpumeter
