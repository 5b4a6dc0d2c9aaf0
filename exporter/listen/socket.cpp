#include "exporter/listen/socket.hpp"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <system_error>

#include "base/text.hpp"
#include "base/users.hpp"
#include "base/vsock.hpp"

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

template <class Address>
Endpoint endpoint_of(const Address& address) noexcept {
  Endpoint endpoint;
  std::memcpy(&endpoint.address, &address, sizeof address);
  endpoint.length = sizeof address;
  return endpoint;
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

struct HostPort {
  std::string host;
  std::uint16_t port;
};

Error bad_address(std::string_view address, std::string_view why) {
  return Error(
      "listen address \"" + std::string(address) + "\": " + std::string(why) +
      "; write host:port, such as localhost:10478, :10478 or [::1]:10478, unix:/path or vsock:CID:PORT");
}

constexpr std::string_view kUnix = "unix:";

Result<Endpoint> unix_endpoint(std::string_view address) {
  const std::string_view path = address.substr(kUnix.size());
  if (!path.starts_with('/')) return bad_address(address, "the path must be absolute");
  if (path.size() > kLongestSocketPath) return bad_address(address, "the path has more than 107 bytes");
  return Endpoint::of_path(path);
}

Result<HostPort> split(std::string_view address) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string_view::npos) return bad_address(address, "the port is missing");
  std::string_view host = address.substr(0, colon);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find_first_of(":[]") != std::string_view::npos) {
    return bad_address(address, "an IPv6 address must be in brackets");
  }
  const auto port = parse_number<std::uint16_t>(address.substr(colon + 1));
  if (!port) return bad_address(address, "the port must be a number from 0 to 65535");
  return HostPort{std::string(host), *port};
}

// Both families have the port at the same place.
static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));

Endpoint with_port(Endpoint endpoint, std::uint16_t port) noexcept {
  const in_port_t wire = htons(port);
  std::memcpy(reinterpret_cast<char*>(&endpoint.address) + offsetof(sockaddr_in, sin_port), &wire,
              sizeof wire);
  return endpoint;
}

Result<std::vector<Endpoint>> resolve(const std::string& host, int flags = AI_PASSIVE) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* list = nullptr;
  const int failure = getaddrinfo(host.c_str(), nullptr, &hints, &list);
  if (failure != 0) return Error("cannot resolve \"" + host + "\": " + gai_strerror(failure));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> guard(list, freeaddrinfo);
  std::vector<Endpoint> endpoints;
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    Endpoint& endpoint = endpoints.emplace_back();
    endpoint.length = entry->ai_addrlen;
    std::memcpy(&endpoint.address, entry->ai_addr, entry->ai_addrlen);
  }
  return endpoints;
}

/// The addresses that the library reads without a resolver: the daemon listens on localhost by default and
/// must work without one. Localhost has two fixed addresses (RFC 6761).
Endpoint numeric(const char* host) { return resolve(host, AI_NUMERICHOST)->front(); }
std::vector<Endpoint> localhost() { return {numeric("127.0.0.1"), numeric("::1")}; }

/// The only socket of its address: an error if this machine lacks it.
Result<Listening> listen_on_one(const Endpoint& endpoint) {
  bool is_absent = false;
  auto socket = ListenSocket::open(endpoint, is_absent);
  if (!socket) return socket.error();
  Listening listening;
  listening.sockets.push_back(*std::move(socket));
  return listening;
}

/// Listens on `endpoint`. If this machine lacks its address or family, adds a note. Every other failure is an
/// error, in particular a port in use: the process that holds it would receive our scrapes.
Result<Done> add_to(Listening& listening, const Endpoint& endpoint) {
  bool is_absent = false;
  auto socket = ListenSocket::open(endpoint, is_absent);
  if (socket) {
    listening.sockets.push_back(*std::move(socket));
  } else if (is_absent) {
    listening.notes.push_back(socket.error().message());
  } else {
    return socket.error();
  }
  return Done{};
}

/// Listens on every address of the machine: one socket for both families, or IPv4 alone if the kernel has no
/// IPv6.
Result<Listening> listen_everywhere(std::uint16_t port) {
  Listening listening;
  if (const auto both = add_to(listening, with_port(numeric("::"), port)); !both) return both.error();
  if (!listening.sockets.empty()) return listening;
  if (const auto one = add_to(listening, with_port(numeric("0.0.0.0"), port)); !one) return one.error();
  if (listening.sockets.empty()) return Error(listening.notes.back());
  return listening;
}

Result<Listening> listen_on_all(const std::vector<Endpoint>& endpoints, std::uint16_t port) {
  Listening listening;
  for (const Endpoint& endpoint : endpoints) {
    if (!listening.sockets.empty()) port = listening.sockets.front().endpoint().port();
    if (const auto added = add_to(listening, with_port(endpoint, port)); !added) return added.error();
  }
  if (!listening.sockets.empty()) return listening;
  std::string why;
  for (const std::string& note : listening.notes) why += (why.empty() ? "" : "; ") + note;
  return Error(why);
}

/// Tries again, because the port that the kernel chose for the first address may be in use on the next.
Result<Listening> listen_on_any_port(const std::vector<Endpoint>& endpoints) {
  constexpr int kAttempts = 8;
  Result<Listening> listening = listen_on_all(endpoints, 0);
  for (int attempt = 1; !listening && attempt < kAttempts; ++attempt) listening = listen_on_all(endpoints, 0);
  return listening;
}

/// [::] accepts both families, 0.0.0.0 only IPv4.
bool takes(const Endpoint& socket, const Endpoint& wanted) {
  if (socket.port() != wanted.port()) return false;
  const std::string host = socket.text().substr(0, socket.text().rfind(':'));
  if (host == "[::]") return true;
  return (host == "0.0.0.0" && wanted.address.ss_family == AF_INET) || socket.text() == wanted.text();
}

constexpr std::size_t kNetworkBytes = 8;  // of an IPv6 address: its first 64 bits

std::string bytes_of(const void* data, std::size_t size) { return {static_cast<const char*>(data), size}; }

Descriptor stream_socket(int family) {
  return Descriptor(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

Peer of_ipv4(const in_addr& address) {
  return {bytes_of(&address, sizeof address), ntohl(address.s_addr) >> 24 != IN_LOOPBACKNET};
}

Peer of_ipv6(const in6_addr& address) {
  if (!IN6_IS_ADDR_V4MAPPED(&address)) {
    return {bytes_of(&address, kNetworkBytes), !IN6_IS_ADDR_LOOPBACK(&address)};
  }
  in_addr mapped{};
  std::memcpy(&mapped, &address.s6_addr[12], sizeof mapped);
  return of_ipv4(mapped);
}

}  // namespace

Endpoint Endpoint::of_path(std::string_view path) noexcept {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, kLongestSocketPath);
  return endpoint_of(address);
}

std::string Endpoint::text() const {
  if (is_unix()) return std::string("unix:").append(as<sockaddr_un>(*this).sun_path);
  if (address.ss_family == AF_VSOCK) return vsock::text_of(as<sockaddr_vm>(*this));
  char host[INET6_ADDRSTRLEN] = "?";
  const auto ip = as<sockaddr_in>(*this);
  const auto ip6 = as<sockaddr_in6>(*this);
  const bool is_ip6 = address.ss_family == AF_INET6;
  inet_ntop(address.ss_family, is_ip6 ? static_cast<const void*>(&ip6.sin6_addr) : &ip.sin_addr, host,
            sizeof host);
  return (is_ip6 ? "[" + std::string(host) + "]:" : std::string(host) + ":") + std::to_string(port());
}

std::uint16_t Endpoint::port() const noexcept {
  const bool has_port = address.ss_family == AF_INET || address.ss_family == AF_INET6;
  return has_port ? ntohs(as<sockaddr_in>(*this).sin_port) : 0;
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

// Connections are refused until listen(2), so no client connects before the file has its permissions.
Result<ListenSocket> ListenSocket::open_file(const Endpoint& endpoint, Descriptor descriptor, mode_t mode) {
  const auto failed = [&](const Error& error) { return error.with("cannot listen on " + endpoint.text()); };
  Result<SocketFile> file = SocketFile::bind(descriptor, as<sockaddr_un>(endpoint).sun_path, mode);
  if (!file) return failed(file.error());
  if (listen(descriptor.number(), kBacklog) != 0) return failed(Error(last_error()));
  ListenSocket listener{std::move(descriptor)};
  listener.endpoint_ = endpoint;
  listener.file_ = *std::move(file);
  return listener;
}

Result<ListenSocket> ListenSocket::open(const Endpoint& endpoint, bool& is_absent) {
  // The same clients as on localhost: a TCP port has no permissions. The folder can restrict them further.
  constexpr mode_t kEveryUser = 0666;
  is_absent = false;
  Descriptor descriptor = stream_socket(endpoint.address.ss_family);
  if (descriptor && endpoint.is_unix()) return open_file(endpoint, std::move(descriptor), kEveryUser);
  const int failure = descriptor ? bind_and_listen(descriptor.number(), endpoint) : errno;
  is_absent = failure == EADDRNOTAVAIL || failure == EAFNOSUPPORT;
  if (failure == 0) return adopt(descriptor.release());
  return Error(std::generic_category().message(failure)).with("cannot listen on " + endpoint.text());
}

Result<ListenSocket> ListenSocket::open_private(const std::string& path) {
  constexpr mode_t kOwnerAndGroup = 0660;
  const Result<Endpoint> endpoint = unix_endpoint("unix:" + path);
  if (!endpoint) return endpoint.error();
  Descriptor descriptor = stream_socket(AF_UNIX);
  if (!descriptor) return Error(last_error());
  Result<ListenSocket> opened = open_file(*endpoint, std::move(descriptor), kOwnerAndGroup);
  if (opened) opened->is_private_ = true;
  return opened;
}

bool is_host_and_port(std::string_view address) {
  const auto is_odd = [](char c) {
    return static_cast<unsigned char>(c) <= 0x20 || std::string_view("/[]").find(c) != std::string_view::npos;
  };
  const auto where = split(address);
  if (!where || std::ranges::any_of(where->host, is_odd)) return false;
  in_addr numeric{};
  const bool is_numeric = where->host.find_first_not_of("0123456789.") == std::string::npos;
  return where->host.empty() || !is_numeric || inet_pton(AF_INET, where->host.c_str(), &numeric) == 1;
}

bool is_served(std::string_view address, std::span<const ListenSocket> sockets) {
  if (address.starts_with(kUnix) || address.starts_with(vsock::kScheme)) {
    return std::ranges::any_of(sockets, [&](const auto& each) { return each.endpoint().text() == address; });
  }
  const auto where = split(address);
  if (!where) return false;
  Result<std::vector<Endpoint>> wanted =
      where->host == "localhost" ? localhost()
                                 : resolve(where->host.empty() ? "0.0.0.0" : where->host, AI_NUMERICHOST);
  if (!wanted) return false;
  return std::ranges::any_of(sockets, [&](const ListenSocket& socket) {
    return takes(socket.endpoint(), with_port(wanted->front(), where->port));
  });
}

Result<Listening> listen_on(std::string_view address) {
  if (address.starts_with(kUnix)) {
    const auto endpoint = unix_endpoint(address);
    if (!endpoint) return endpoint.error();
    return listen_on_one(*endpoint);
  }
  if (const auto machine = vsock::parse(address)) return listen_on_one(endpoint_of(*machine));
  const auto where = split(address);
  if (!where) return where.error();
  if (where->host.empty()) return listen_everywhere(where->port);
  const auto endpoints = where->host == "localhost" ? localhost() : resolve(where->host);
  if (!endpoints) return endpoints.error().with("listen address \"" + std::string(address) + "\"");
  return where->port == 0 ? listen_on_any_port(*endpoints) : listen_on_all(*endpoints, where->port);
}

Peer Peer::of_uid(std::uint32_t uid, const UserOwners* owners) {
  return {.key = std::to_string(payer_of(uid, owners == nullptr ? uid : owners->owner_of(uid)))};
}

Peer Peer::of(const sockaddr* address, int descriptor, const UserOwners* owners) {
  if (address == nullptr) return {};
  if (address->sa_family == AF_UNIX) {
    ucred user{};
    socklen_t size = sizeof user;
    const bool is_known = getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &user, &size) == 0;
    return is_known ? of_uid(user.uid, owners) : Peer();
  }
  if (address->sa_family == AF_INET) {
    sockaddr_in ip{};
    std::memcpy(&ip, address, sizeof ip);
    return of_ipv4(ip.sin_addr);
  }
  if (address->sa_family == AF_VSOCK) {
    sockaddr_vm machine{};
    std::memcpy(&machine, address, sizeof machine);
    return {"vsock:" + std::to_string(machine.svm_cid), machine.svm_cid != VMADDR_CID_LOCAL};
  }
  if (address->sa_family != AF_INET6) return {};
  sockaddr_in6 ip{};
  std::memcpy(&ip, address, sizeof ip);
  return of_ipv6(ip.sin6_addr);
}

}  // namespace gpumeter
