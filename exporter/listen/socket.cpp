#include "exporter/listen/socket.hpp"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <cstddef>
#include <cstring>
#include <system_error>

namespace gpumeter {
namespace {

/// Number of connections that the kernel queues until they are accepted. A client that finds the queue full
/// retries only after a second, so a burst of other clients must not fill it.
constexpr int kBacklog = 1024;

std::string last_error() { return std::generic_category().message(errno); }

/// Copies a socket address into the type that its family requires.
template <class Address>
Address as(const Endpoint& endpoint) noexcept {
  Address address{};
  std::memcpy(&address, &endpoint.address, sizeof address);
  return address;
}

std::string host_text(int family, const void* host) {
  char text[INET6_ADDRSTRLEN] = "?";
  inet_ntop(family, host, text, sizeof text);
  return text;
}

/// Returns 0 or errno.
int bind_and_listen(int descriptor, const Endpoint& endpoint) {
  const int on = 1;
  const int off = 0;
  setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (endpoint.address.ss_family == AF_INET6) {
    // Only [::] also accepts IPv4 connections, regardless of net.ipv6.bindv6only.
    const auto ip = as<sockaddr_in6>(endpoint);
    const int* only = IN6_IS_ADDR_UNSPECIFIED(&ip.sin6_addr) ? &off : &on;
    setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, only, sizeof *only);
  }
  const auto* address = reinterpret_cast<const sockaddr*>(&endpoint.address);
  if (bind(descriptor, address, endpoint.length) != 0) return errno;
  return listen(descriptor, kBacklog) != 0 ? errno : 0;
}

}  // namespace

Endpoint Endpoint::of_path(std::string_view path) noexcept {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, kLongestSocketPath);
  Endpoint endpoint;
  std::memcpy(&endpoint.address, &address, sizeof address);
  endpoint.length = sizeof address;
  return endpoint;
}

std::string Endpoint::text() const {
  if (address.ss_family == AF_INET) {
    const auto ip = as<sockaddr_in>(*this);
    return host_text(AF_INET, &ip.sin_addr).append(":").append(std::to_string(port()));
  }
  if (address.ss_family == AF_INET6) {
    const auto ip = as<sockaddr_in6>(*this);
    std::string text("[");
    return text.append(host_text(AF_INET6, &ip.sin6_addr)).append("]:").append(std::to_string(port()));
  }
  return std::string("unix:").append(as<sockaddr_un>(*this).sun_path);
}

std::uint16_t Endpoint::port() const noexcept {
  if (address.ss_family == AF_INET) return ntohs(as<sockaddr_in>(*this).sin_port);
  if (address.ss_family == AF_INET6) return ntohs(as<sockaddr_in6>(*this).sin6_port);
  return 0;
}

bool Endpoint::is_local() const noexcept {
  if (address.ss_family == AF_INET) return ntohl(as<sockaddr_in>(*this).sin_addr.s_addr) >> 24 == 127;
  if (address.ss_family != AF_INET6) return true;
  const auto ip = as<sockaddr_in6>(*this);
  return IN6_IS_ADDR_LOOPBACK(&ip.sin6_addr);
}

Result<ListenSocket> ListenSocket::adopt(int descriptor) {
  ListenSocket listener{Descriptor(descriptor)};
  Endpoint& endpoint = listener.endpoint_;
  endpoint.length = sizeof endpoint.address;
  if (getsockname(descriptor, reinterpret_cast<sockaddr*>(&endpoint.address), &endpoint.length) != 0) {
    return Error("descriptor " + std::to_string(descriptor) + " is not a socket: " + last_error());
  }
  return listener;
}

// The same clients as on localhost: a TCP port has no permissions. The folder can restrict them further.
// Connections are refused until listen(2), so no client connects before the file has its permissions.
Result<ListenSocket> ListenSocket::open_file(const Endpoint& endpoint, Descriptor descriptor) {
  constexpr mode_t kEveryUser = 0666;
  const auto failed = [&](const Error& error) { return error.with("cannot listen on " + endpoint.text()); };
  Result<SocketFile> file = SocketFile::bind(descriptor, as<sockaddr_un>(endpoint).sun_path, kEveryUser);
  if (!file) return failed(file.error());
  if (listen(descriptor.number(), kBacklog) != 0) return failed(Error(last_error()));
  ListenSocket listener{std::move(descriptor)};
  listener.endpoint_ = endpoint;
  listener.file_ = *std::move(file);
  return listener;
}

Result<ListenSocket> ListenSocket::open(const Endpoint& endpoint, bool& is_absent) {
  is_absent = false;
  Descriptor descriptor(socket(endpoint.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (descriptor && endpoint.address.ss_family == AF_UNIX) return open_file(endpoint, std::move(descriptor));
  const int failure = descriptor ? bind_and_listen(descriptor.number(), endpoint) : errno;
  is_absent = failure == EADDRNOTAVAIL || failure == EAFNOSUPPORT;
  if (failure == 0) return adopt(descriptor.release());
  return Error(std::generic_category().message(failure)).with("cannot listen on " + endpoint.text());
}

}  // namespace gpumeter
