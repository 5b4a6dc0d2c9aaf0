#include "collectors/profiles/search/sockets.hpp"

#include <fcntl.h>
#include <fnmatch.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <system_error>

#include "base/folder.hpp"
#include "base/small_file.hpp"
#include "base/text.hpp"

namespace gpumeter::profiles {
namespace {

constexpr std::size_t kMostTable = 16U << 20U;
constexpr std::size_t kMostListeners = 65536;
constexpr unsigned long kAcceptsConnections = 1UL << 16;  // __SO_ACCEPTCON of linux/net.h
constexpr int kHex = 16;

std::string_view next_field(std::string_view& line) noexcept {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  return take_until(line, ' ');
}

// Num RefCount Protocol Flags Type St Inode Path. The process chooses the path, and may write a line end in
// it: connect_to_socket() asks the kernel who listens.
std::optional<UnixListener> read_row(std::string_view line) {
  for (int i = 0; i < 3; ++i) next_field(line);
  const auto flags = parse_number<unsigned long>(next_field(line), kHex);
  const auto type = parse_number<int>(next_field(line), kHex);
  next_field(line);  // St
  const auto inode = parse_number<std::uint64_t>(next_field(line));
  if (!flags || (*flags & kAcceptsConnections) == 0 || type != SOCK_STREAM || !inode) return std::nullopt;
  if (!line.starts_with('/')) return std::nullopt;
  return UnixListener{std::string(line), *inode};
}

Error system_error(const std::string& path) {
  return Error(path + ": " + std::generic_category().message(errno));
}

}  // namespace

std::vector<UnixListener> unix_listeners_in(std::string_view table) {
  std::vector<UnixListener> found;
  while (!table.empty() && found.size() < kMostListeners) {
    if (auto listener = read_row(take_until(table, '\n'))) found.push_back(*std::move(listener));
  }
  return found;
}

bool is_worker_socket(const std::string& path, std::span<const std::string> patterns) {
  if (path.find("/../") != std::string::npos) return false;
  return std::ranges::any_of(patterns, [&](const std::string& pattern) {
    return fnmatch(pattern.c_str(), path.c_str(), FNM_PATHNAME) == 0;
  });
}

Result<Done> SocketSearch::find(Ports& ports) {
  if (patterns_.empty()) return Done{};
  const SmallFile table = read_small_file(procfs_ + "/net/unix", kMostTable);
  if (table.error != 0) {
    return Error(procfs_ + "/net/unix: " + std::generic_category().message(table.error));
  }
  std::vector<UnixListener> all = unix_listeners_in(table.text);
  std::erase_if(all, [this](const UnixListener& each) { return !is_worker_socket(each.path, patterns_); });
  WantedSockets wanted;
  for (const UnixListener& each : all) wanted[each.inode] = std::nullopt;
  holders_.look_for(wanted);
  std::set<int> seen;
  for (const PortHolder& each : ports.holders) seen.insert(each.process.pid);
  for (const UnixListener& each : all) {
    const SocketHolder* const holder = holders_.of(each.inode);
    if (holder == nullptr) {
      ports.hidden_sockets.insert(each.path);
    } else if (holder->has_worker_server && seen.insert(holder->pid).second) {
      const bool may_connect = faccessat(AT_FDCWD, each.path.c_str(), W_OK, AT_EACCESS) == 0;
      ports.holders.push_back({{holder->pid, holder->uid}, {}, true, each.path, may_connect});
    }
  }
  std::ranges::sort(ports.holders, {}, [](const PortHolder& each) { return each.process.pid; });
  return Done{};
}

Result<Descriptor> connect_to_socket(const std::string& path, std::uint32_t uid) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return Error(path + ": is too long for a socket");
  const PathOfFile at(path);
  const Result<Folder> folder = Folder::open(at.folder);
  if (!folder) return folder.error();
  const auto facts = folder->facts(at.name);
  if (!facts) return system_error(path);
  if (!S_ISSOCK(facts->st_mode)) return Error(path + ": is not a socket");
  const std::string through = "/proc/self/fd/" + std::to_string(folder->number()) + "/" + at.name;
  if (through.size() >= sizeof address.sun_path) return Error(path + ": is too long for a socket");
  through.copy(address.sun_path, through.size());
  Descriptor made(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const auto* const any = reinterpret_cast<const sockaddr*>(&address);
  if (!made || ::connect(made.number(), any, sizeof address) != 0) return system_error(path);
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(made.number(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return system_error(path);
  if (peer.uid != uid) return Error(path + ": now belongs to a process of uid " + std::to_string(peer.uid));
  return made;
}

}  // namespace gpumeter::profiles
