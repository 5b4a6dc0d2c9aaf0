#include "collectors/sources/tcp.hpp"

#include <arpa/inet.h>
#include <dirent.h>
#include <linux/inet_diag.h>
#include <linux/magic.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>

#include "base/descriptor.hpp"
#include "base/proc.hpp"
#include "base/text.hpp"

namespace gpumeter::tcp {
namespace {

constexpr unsigned kListening = 10;       // TCP_LISTEN of include/net/tcp_states.h
constexpr unsigned short kCgroupId = 21;  // INET_DIAG_CGROUP_ID of linux/inet_diag.h, since Linux 5.8
constexpr std::size_t kMostListeners = 65536;

Error system_error() { return Error("sock_diag: " + std::generic_category().message(errno)); }

/// Copies the head of `bytes`; false if they are too few.
template <class Head>
bool read_head(std::span<const std::byte> bytes, Head& head) noexcept {
  if (bytes.size() < sizeof head) return false;
  std::memcpy(&head, bytes.data(), sizeof head);
  return true;
}

std::string address_of(const inet_diag_msg& message) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (message.idiag_family == AF_INET) {
    in_addr address{message.id.idiag_src[0]};
    if (address.s_addr == INADDR_ANY) return "127.0.0.1";
    if ((ntohl(address.s_addr) >> 24U) != IN_LOOPBACKNET) return {};
    return inet_ntop(AF_INET, &address, text.data(), text.size());
  }
  in6_addr address{};
  std::memcpy(&address, message.id.idiag_src, sizeof address);
  const bool is_here = IN6_IS_ADDR_UNSPECIFIED(&address) || IN6_IS_ADDR_LOOPBACK(&address);
  return is_here ? "::1" : "";
}

std::uint64_t cgroup_id_of(std::span<const std::byte> attributes) noexcept {
  rtattr attribute{};
  while (read_head(attributes, attribute)) {
    if (attribute.rta_len < sizeof attribute || attribute.rta_len > attributes.size()) return 0;
    std::uint64_t id = 0;
    if (attribute.rta_type == kCgroupId &&
        read_head(attributes.first(attribute.rta_len).subspan(RTA_LENGTH(0)), id)) {
      return id;
    }
    attributes = attributes.subspan(std::min<std::size_t>(RTA_ALIGN(attribute.rta_len), attributes.size()));
  }
  return 0;
}

void take_listener(std::span<const std::byte> payload, std::vector<Listener>& out) {
  inet_diag_msg message{};
  if (!read_head(payload, message) || message.idiag_state != kListening) return;
  if (message.idiag_family != AF_INET && message.idiag_family != AF_INET6) return;
  if (out.size() >= kMostListeners) return;
  const std::size_t head = std::min<std::size_t>(NLMSG_ALIGN(sizeof message), payload.size());
  out.push_back({ntohs(message.id.idiag_sport), address_of(message), message.idiag_inode, message.idiag_uid,
                 cgroup_id_of(payload.subspan(head))});
}

/// Both messages start with an error number, negative or 0: a kernel without the module tcp_diag answers
/// -ENOENT.
Result<bool> end_of(std::span<const std::byte> payload) {
  int error = 0;
  if (!read_head(payload, error) || error >= 0) return false;
  constexpr int kLeast = -4095;  // the kernel's MAX_ERRNO
  errno = error < kLeast ? EPROTO : -error;
  return system_error();
}

Result<Done> ask(const Descriptor& socket, std::uint8_t family) {
  struct {
    nlmsghdr header;
    inet_diag_req_v2 request;
  } question{};
  question.header.nlmsg_len = sizeof question;
  question.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  question.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  question.request.sdiag_family = family;
  question.request.sdiag_protocol = IPPROTO_TCP;
  question.request.idiag_states = 1U << kListening;
  const ssize_t sent = send(socket.number(), &question, sizeof question, 0);
  return sent < 0 ? Result<Done>(system_error()) : Done{};
}

Result<Done> receive_all(const Descriptor& socket, std::vector<Listener>& out) {
  alignas(nlmsghdr) std::array<std::byte, 32768> datagram;
  while (true) {
    const ssize_t got = recv(socket.number(), datagram.data(), datagram.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error();
    const Result<bool> follows =
        take_listeners(std::span(datagram).first(static_cast<std::size_t>(got)), out);
    if (!follows) return follows.error();
    if (!*follows) return Done{};
  }
}

}  // namespace

Result<bool> take_listeners(std::span<const std::byte> datagram, std::vector<Listener>& out) {
  nlmsghdr header{};
  while (read_head(datagram, header)) {
    if (header.nlmsg_len < sizeof header || header.nlmsg_len > datagram.size()) return false;
    const auto payload = datagram.first(header.nlmsg_len).subspan(NLMSG_HDRLEN);
    if (header.nlmsg_type == NLMSG_DONE || header.nlmsg_type == NLMSG_ERROR) return end_of(payload);
    if (header.nlmsg_type == SOCK_DIAG_BY_FAMILY) take_listener(payload, out);
    datagram = datagram.subspan(std::min<std::size_t>(NLMSG_ALIGN(header.nlmsg_len), datagram.size()));
  }
  return datagram.empty();
}

Result<std::vector<Listener>> listeners_by_sock_diag() {
  const Descriptor netlink(socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (!netlink) return system_error();
  const timeval patience{1, 0};  // the kernel answers at once; the limit is for a kernel that does not
  setsockopt(netlink.number(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  std::vector<Listener> found;
  for (const std::uint8_t family : {std::uint8_t{AF_INET}, std::uint8_t{AF_INET6}}) {
    if (Result<Done> asked = ask(netlink, family); !asked) return asked.error();
    if (Result<Done> received = receive_all(netlink, found); !received) return received.error();
  }
  return found;
}

namespace {

constexpr int kHex = 16;
/// The kernel lists listening sockets before all others.
constexpr std::size_t kMostTable = 16U << 20U;
constexpr std::string_view kListen = "0A";  // TCP_LISTEN of include/net/tcp_states.h

std::string_view next_field(std::string_view& line) noexcept {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  return take_until(line, ' ');
}

// The words of an address are printed in the byte order of the machine.
std::string address_of(std::string_view address, bool is_ip6) {
  const char* const loopback = is_ip6 ? "::1" : "127.0.0.1";
  if (address.find_first_not_of('0') == std::string_view::npos) return loopback;
  const std::string_view last = address.substr(address.size() - std::min<std::size_t>(address.size(), 8));
  const std::string_view front = address.substr(0, address.size() - last.size());
  const auto word = parse_number<std::uint32_t>(last, kHex);
  if (!word) return {};
  if (is_ip6)
    return ntohl(*word) == 1 && front.find_first_not_of('0') == std::string_view::npos ? loopback : "";
  if (ntohl(*word) >> 24U != IN_LOOPBACKNET) return {};
  const in_addr v4{*word};
  std::array<char, INET_ADDRSTRLEN> text{};
  return inet_ntop(AF_INET, &v4, text.data(), text.size());
}

std::optional<Listener> read_row(std::string_view line, bool is_ip6) {
  next_field(line);  // sl
  std::string_view local = next_field(line);
  next_field(line);  // rem_address
  if (next_field(line) != kListen) return std::nullopt;
  const std::string_view address = take_until(local, ':');
  const auto port = parse_number<std::uint16_t>(local, kHex);
  for (int i = 0; i < 3; ++i) next_field(line);  // queues, timer, retrnsmt
  const auto uid = parse_number<std::uint32_t>(next_field(line));
  next_field(line);  // timeout
  const auto inode = parse_number<std::uint64_t>(next_field(line));
  if (!port || !uid || !inode) return std::nullopt;
  return Listener{*port, address_of(address, is_ip6), *inode, *uid, 0};
}

Result<std::vector<Listener>> listeners_by_tables(const std::string& procfs) {
  const SmallFile v4 = read_small_file(procfs + "/net/tcp", kMostTable);
  const SmallFile v6 = read_small_file(procfs + "/net/tcp6", kMostTable);  // missing without IPv6
  if (v4.error != 0 && v6.error != 0) {
    return Error(procfs + "/net/tcp: " + std::generic_category().message(v4.error));
  }
  std::vector<Listener> found = listeners_in(v4.text, false);
  const std::vector<Listener> more = listeners_in(v6.text, true);
  found.insert(found.end(), more.begin(), more.end());
  return found;
}

}  // namespace

std::vector<Listener> listeners_in(std::string_view table, bool is_ip6) {
  std::vector<Listener> found;
  while (!table.empty() && found.size() < kMostListeners) {
    if (auto listener = read_row(take_until(table, '\n'), is_ip6)) found.push_back(*std::move(listener));
  }
  return found;
}

Result<std::vector<Listener>> listeners(const std::string& procfs) {
  struct statfs mounted {};
  const bool is_kernels = statfs(procfs.c_str(), &mounted) == 0 && mounted.f_type == PROC_SUPER_MAGIC;
  if (is_kernels) {
    if (Result<std::vector<Listener>> found = listeners_by_sock_diag()) return found;
  }
  return listeners_by_tables(procfs);
}

namespace {

constexpr std::size_t kMostDescriptors = 1U << 20U;  // the kernel's default limit of a process (nr_open)

struct CloseFolder {
  void operator()(DIR* folder) const noexcept { ::closedir(folder); }
};

/// Calls see(folder, name) for each descriptor in the folder until it returns false. Returns errno if the
/// folder cannot be read.
template <class See>
int each_descriptor(const std::string& path, See&& see) {
  const std::unique_ptr<DIR, CloseFolder> folder(::opendir(path.c_str()));
  if (!folder) return errno;
  for (std::size_t seen = 0; seen < kMostDescriptors; ++seen) {
    const dirent* const entry = ::readdir(folder.get());
    if (entry == nullptr || !see(::dirfd(folder.get()), entry->d_name)) break;
  }
  return 0;
}

/// The inode of "socket:[123]".
std::optional<std::uint64_t> socket_of(int folder, const char* name) noexcept {
  std::array<char, 64> link{};
  const ssize_t length = ::readlinkat(folder, name, link.data(), link.size());
  if (length <= 0) return std::nullopt;
  const std::string_view target(link.data(), static_cast<std::size_t>(length));
  constexpr std::string_view kStart = "socket:[";
  if (!target.starts_with(kStart) || !target.ends_with(']')) return std::nullopt;
  return parse_number<std::uint64_t>(target.substr(kStart.size(), target.size() - kStart.size() - 1));
}

/// What /proc/PID/fdinfo/FD has of an open file. An inode's number is unique on its mount only.
struct OpenFile {
  std::optional<std::uint64_t> mount;
  std::optional<std::uint64_t> inode;  ///< none before Linux 5.14
};

OpenFile open_file(const std::string& path) {
  constexpr std::size_t kMostInfo = 4096;  // the two lines are among the first four
  const SmallFile file = read_small_file(path, kMostInfo);
  OpenFile found;
  for (std::string_view rest = file.text; !rest.empty();) {
    std::string_view value = take_until(rest, '\n');
    const std::string_view key = take_until(value, ':');
    if (key == "mnt_id") found.mount = parse_number<std::uint64_t>(trimmed(value));
    if (key == "ino") found.inode = parse_number<std::uint64_t>(trimmed(value));
  }
  return found;
}

/// The kernel's mount of all sockets.
std::optional<std::uint64_t> mount_of_sockets() {
  const Descriptor own(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return own ? open_file("/proc/self/fdinfo/" + std::to_string(own.number())).mount : std::nullopt;
}

}  // namespace

Held sockets_of(const std::string& procfs, int pid, const std::set<std::uint64_t>& wanted) {
  Held held;
  const auto take = [&](std::optional<std::uint64_t> inode) {
    if (inode && wanted.contains(*inode)) held.sockets.insert(*inode);
    return held.sockets.size() < wanted.size();
  };
  held.error = each_descriptor(proc::path(procfs, pid, "fd"),
                               [&](int folder, const char* name) { return take(socket_of(folder, name)); });
  if (held.error != EACCES) return held;
  const std::optional<std::uint64_t> sockets = mount_of_sockets();
  if (!sockets) return held;
  const std::string infos = proc::path(procfs, pid, "fdinfo");
  held.error = each_descriptor(infos, [&](int, const char* name) {
    const OpenFile file = open_file(infos + "/" + name);
    return take(file.mount == sockets ? file.inode : std::nullopt);
  });
  return held;
}

}  // namespace gpumeter::tcp
