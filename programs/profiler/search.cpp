#include "programs/profiler/search.hpp"

#include <fcntl.h>
#include <fnmatch.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/folder.hpp"
#include "base/proc.hpp"
#include "base/text.hpp"
#include "collectors/sources/sysfs.hpp"
#include "collectors/sources/tcp.hpp"

namespace gpumeter::profiles {
namespace {

// PyTorch's WorkerServer names its threads (torch/csrc/distributed/c10d/control_plane/WorkerServer.cpp).
bool has_worker_server(const std::string& procfs, int pid) {
  constexpr std::string_view kThread = "pt_workerserver";
  const std::string tasks = proc::path(procfs, pid, "task");
  return std::ranges::any_of(sysfs::list(tasks), [&](const std::string& task) {
    return sysfs::read_text(tasks + "/" + task + "/comm") == kThread;
  });
}

/// The folder in which Python found jaxlib; empty: the process has not loaded it.
std::string folder_of_jaxlib(std::string_view maps) {
  const std::size_t at = maps.find("/jaxlib/");
  if (at == std::string_view::npos) return "";
  const std::size_t line = maps.rfind('\n', at) + 1;  // npos + 1 is 0
  const std::size_t path = maps.find('/', line);
  return std::string(maps.substr(path, at - path));
}

/// "jaxlib-0.10.2.dist-info" is 0.10.2.
std::array<unsigned, 3> version_of(std::string_view name, std::string_view package) {
  std::array<unsigned, 3> version{};
  name.remove_prefix(package.size());
  for (unsigned& part : version) part = parse_number<unsigned>(take_until(name, '.')).value_or(0);
  return version;
}

/// Tracing the host makes jaxlib import TensorFlow's Python package, and jaxlib 0.8.1 stops the job for ever
/// if there is none (xla/python/profiler/internal/python_hooks.cc). 0.10.2 goes on; those between are not
/// known. TensorFlow itself, or JAX with TensorFlow loaded, has the package.
bool has_safe_host_trace(const std::string& procfs, int pid) {
  constexpr std::size_t kMostMaps = 16U << 20U;
  constexpr std::string_view kPackage = "jaxlib-";
  constexpr std::array<unsigned, 3> kSafe = {0, 10, 2};
  const SmallFile maps = read_small_file(proc::path(procfs, pid, "maps"), kMostMaps);
  if (maps.text.find("/libtensorflow_framework.so") != std::string::npos) return true;
  const std::string folder = folder_of_jaxlib(maps.text);
  if (folder.empty()) return false;
  const std::vector<std::string> packages = sysfs::list(proc::path(procfs, pid, "root") + folder);
  return std::ranges::any_of(packages, [&](const std::string& name) {
    return name.starts_with(kPackage) && name.ends_with(".dist-info") && version_of(name, kPackage) >= kSafe;
  });
}

std::set<std::uint64_t> of_user(const WantedSockets& wanted, std::uint32_t user) {
  std::set<std::uint64_t> own;
  for (const auto& [inode, uid] : wanted) {
    if (!uid || *uid == user) own.insert(inode);
  }
  return own;
}

bool is_older(const SocketHolder& one, const SocketHolder& other) {
  return std::pair(one.start, one.pid) < std::pair(other.start, other.pid);
}

/// The addresses that the doors connect to.
bool is_reached(const tcp::Listener& listener) {
  return listener.address == "127.0.0.1" || listener.address == "::1";
}

bool is_same_place(const tcp::Listener& one, const tcp::Listener& other) {
  return one.port == other.port && one.address == other.address;
}

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

void add_ports(const std::vector<tcp::Listener>& listeners, const SocketHolders& holders, Ports& ports) {
  std::set<int> seen;
  for (const tcp::Listener& each : listeners) {
    const SocketHolder* const holder = holders.of(each.inode);
    const auto is_same = [&](const tcp::Listener& other) { return is_same_place(other, each); };
    if (std::ranges::count_if(listeners, is_same) > 1) {
      ports.shared.insert(each.port);
    } else if (holder == nullptr) {
      ports.hidden.insert(each.port);
    } else if (seen.insert(holder->pid).second) {
      ports.holders.push_back({.process = *holder, .listener = each});
    }
  }
}

/// A process that has a port as well keeps the port.
void add_sockets(const std::vector<UnixListener>& listeners, const SocketHolders& holders, Ports& ports) {
  std::set<int> seen;
  for (const PortHolder& each : ports.holders) seen.insert(each.process.pid);
  for (const UnixListener& each : listeners) {
    const SocketHolder* const holder = holders.of(each.inode);
    if (holder == nullptr) {
      ports.hidden_sockets.insert(each.path);
    } else if (holder->has_worker_server && seen.insert(holder->pid).second) {
      const bool may_connect = faccessat(AT_FDCWD, each.path.c_str(), W_OK, AT_EACCESS) == 0;
      ports.holders.push_back({*holder, {}, each.path, may_connect});
    }
  }
}

}  // namespace

ProcessLook look_at(const std::string& procfs, int pid, const WantedSockets& wanted) {
  const auto uids = proc::uids(sysfs::read_text(proc::path(procfs, pid, "status")));
  const std::string stat = sysfs::read_text(proc::path(procfs, pid, "stat"));
  const auto start = proc::start_ticks(stat);
  if (!uids || !start || !proc::is_alive(stat)) return {};
  constexpr std::size_t kEffective = 1;  // a socket belongs to the effective user
  ProcessLook look{{pid, (*uids)[kEffective], *start}, {}};
  const std::set<std::uint64_t> own = of_user(wanted, look.process.uid);
  if (!own.empty()) look.sockets = tcp::sockets_of(procfs, pid, own).sockets;
  if (wanted.empty() || !look.sockets.empty()) {
    look.process.has_worker_server = has_worker_server(procfs, pid);
  }
  if (!look.sockets.empty()) look.process.has_safe_host_trace = has_safe_host_trace(procfs, pid);
  return look;
}

SocketHolders::SocketHolders(const std::string& procfs, const Clock& clock, Look look)
    : procfs_(procfs),
      look_(look ? std::move(look)
                 : [procfs](int pid, const WantedSockets& wanted) { return look_at(procfs, pid, wanted); }),
      calls_(std::make_unique<BoundedCalls>("profile-look", kPatience, clock)) {}

std::vector<std::string> SocketHolders::known_pids() const {
  std::set<std::string> pids;
  for (const auto& [inode, holder] : known_) pids.insert(std::to_string(holder.pid));
  return {pids.begin(), pids.end()};
}

void SocketHolders::renew() {
  const auto looks = calls_->ask<ProcessLook>(known_pids(), [look = look_](const std::string& pid) {
    return look(parse_number<int>(pid).value_or(0), {});
  });
  for (auto& [inode, holder] : known_) {
    const auto found = looks.values.find(std::to_string(holder.pid));
    if (found == looks.values.end()) continue;
    SocketHolder now = found->second.process;
    now.has_safe_host_trace = holder.has_safe_host_trace;
    holder = now.start == holder.start ? now : SocketHolder();
  }
  std::erase_if(known_, [](const auto& entry) { return entry.second.pid == 0; });
}

void SocketHolders::find(const WantedSockets& wanted) {
  std::vector<std::string> pids = sysfs::list(procfs_);
  std::erase_if(pids, [](const std::string& name) { return !parse_number<int>(name); });
  const auto looks = calls_->ask<ProcessLook>(pids, [look = look_, wanted](const std::string& pid) {
    return look(parse_number<int>(pid).value_or(0), wanted);
  });
  for (const auto& [pid, look] : looks.values) {
    for (const std::uint64_t inode : look.sockets) {
      SocketHolder& holder = known_[inode];
      if (holder.pid == 0 || is_older(look.process, holder)) holder = look.process;
    }
  }
}

void SocketHolders::look_for(const WantedSockets& sockets) {
  std::erase_if(known_, [&](const auto& entry) { return !sockets.contains(entry.first); });
  if (!known_.empty()) renew();
  WantedSockets unknown = sockets;
  std::erase_if(unknown, [&](const auto& entry) { return known_.contains(entry.first); });
  if (!unknown.empty()) find(unknown);
}

const SocketHolder* SocketHolders::of(std::uint64_t inode) const {
  const auto found = known_.find(inode);
  return found == known_.end() ? nullptr : &found->second;
}

Result<Done> check_listener(const std::string& procfs, const tcp::Listener& listener) {
  const Result<std::vector<tcp::Listener>> all = tcp::listeners(procfs);
  if (!all) return all.error();
  const std::string port = "port " + std::to_string(listener.port);
  bool is_there = false;
  for (const tcp::Listener& each : *all) {
    if (!is_same_place(each, listener)) continue;
    if (each.inode != listener.inode) return Error(port + " now belongs to another process as well");
    is_there = true;
  }
  return is_there ? Result<Done>(Done{}) : Error("the process no longer listens on " + port);
}

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

Result<std::vector<tcp::Listener>> ServiceSearch::listeners() const {
  if (ports_.empty()) return std::vector<tcp::Listener>();
  Result<std::vector<tcp::Listener>> all = tcp::listeners(procfs_);
  if (!all) return all;
  std::erase_if(*all, [this](const tcp::Listener& each) {
    return std::ranges::find(ports_, each.port, &options::Port::number) == ports_.end() || !is_reached(each);
  });
  return all;
}

Result<std::vector<UnixListener>> ServiceSearch::unix_listeners() const {
  if (patterns_.empty()) return std::vector<UnixListener>();
  const SmallFile table = read_small_file(procfs_ + "/net/unix", kMostTable);
  if (table.error != 0) {
    return Error(procfs_ + "/net/unix: " + std::generic_category().message(table.error));
  }
  std::vector<UnixListener> all = unix_listeners_in(table.text);
  std::erase_if(all, [this](const UnixListener& each) { return !is_worker_socket(each.path, patterns_); });
  return all;
}

Result<Ports> ServiceSearch::find() {
  const Result<std::vector<tcp::Listener>> on_ports = listeners();
  if (!on_ports) return on_ports.error();
  const Result<std::vector<UnixListener>> on_sockets = unix_listeners();
  if (!on_sockets) return on_sockets.error();
  WantedSockets wanted;
  for (const tcp::Listener& each : *on_ports) wanted[each.inode] = each.uid;
  for (const UnixListener& each : *on_sockets) wanted[each.inode] = std::nullopt;
  holders_.look_for(wanted);
  Ports ports;
  add_ports(*on_ports, holders_, ports);
  add_sockets(*on_sockets, holders_, ports);
  std::ranges::sort(ports.holders, {}, [](const PortHolder& each) { return each.process.pid; });
  return ports;
}

const std::vector<PortHolder>& ServiceSearch::turn() {
  Result<Ports> found = find();
  const std::string error = found ? "" : found.error().message();
  if (error != std::exchange(error_, error) && !error.empty()) {
    log_.warn("the listening sockets are not known; jobs with a profiler service cannot be profiled",
              {{"error", error}});
  }
  Ports now;
  if (found) now = *std::move(found);
  log_changes(now);
  log_unused(now);
  known_ = std::move(now);
  return known_.holders;
}

void ServiceSearch::log_changes(const Ports& now) {
  for (const PortHolder& each : now.holders) {
    if (std::ranges::find(known_.holders, each) != known_.holders.end()) continue;
    const bool has_port = each.socket.empty();
    log_.info(
        "a process with a profiler service can be profiled",
        {{"pid", std::to_string(each.process.pid)},
         {has_port ? "port" : "socket", has_port ? std::to_string(each.listener.port) : each.socket},
         {"uid", std::to_string(each.process.uid)},
         {"trace", each.process.has_worker_server || each.process.has_safe_host_trace ? "host and device"
                                                                                      : "device only"}});
  }
}

void ServiceSearch::log_unused(const Ports& now) {
  constexpr const char* kHidden =
      "its process is not known; this needs root or CAP_SYS_PTRACE (gpumeter-profiler.service has it)";
  std::set<std::string> unused;
  const auto warn = [&](const char* event, const char* name, const std::string& value, const char* why) {
    unused.insert(value);
    if (!unused_.contains(value)) log_.warn(event, {{name, value}, {"error", why}});
  };
  const char* const port_event = "a port of profiles.profiler_ports is not asked";
  for (const std::uint16_t port : now.shared) {
    warn(port_event, "port", std::to_string(port),
         "several processes listen on it, and the kernel chooses who answers; give each its own");
  }
  for (const std::uint16_t port : now.hidden) warn(port_event, "port", std::to_string(port), kHidden);
  for (const std::string& path : now.hidden_sockets) {
    warn("a socket of profiles.worker_sockets is not asked", "socket", path, kHidden);
  }
  unused_ = std::move(unused);
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
