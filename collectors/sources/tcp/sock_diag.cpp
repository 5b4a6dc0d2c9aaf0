#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/descriptor.hpp"
#include "collectors/sources/tcp/listeners.hpp"

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

}  // namespace gpumeter::tcp
