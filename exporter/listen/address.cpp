#include "exporter/listen/address.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>

#include "base/text.hpp"

namespace gpumeter {
namespace {

struct HostPort {
  std::string host;
  std::uint16_t port;
};

Error bad_address(std::string_view address, std::string_view why) {
  return Error("listen address \"" + std::string(address) + "\": " + std::string(why) +
               "; write host:port, such as localhost:10478, :10478 or [::1]:10478, or unix:/path");
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

template <class Address>
Endpoint endpoint_of(const Address& address) noexcept {
  Endpoint endpoint;
  std::memcpy(&endpoint.address, &address, sizeof address);
  endpoint.length = sizeof address;
  return endpoint;
}

Endpoint ipv4(std::uint32_t host) noexcept {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(host);
  return endpoint_of(address);
}

Endpoint ipv6(const in6_addr& host) noexcept {
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = host;
  return endpoint_of(address);
}

Endpoint with_port(Endpoint endpoint, std::uint16_t port) noexcept {
  static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
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

/// Returns localhost's two fixed addresses (RFC 6761) without a resolver. The daemon listens there by default
/// and must work without one.
Result<std::vector<Endpoint>> endpoints_of(const std::string& host) {
  if (host == "localhost") return std::vector{ipv4(INADDR_LOOPBACK), ipv6(in6addr_loopback)};
  return resolve(host);
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
  if (const auto both = add_to(listening, with_port(ipv6(in6addr_any), port)); !both) return both.error();
  if (!listening.sockets.empty()) return listening;
  if (const auto one = add_to(listening, with_port(ipv4(INADDR_ANY), port)); !one) return one.error();
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

}  // namespace

bool is_served(std::string_view address, std::span<const ListenSocket> sockets) {
  if (address.starts_with(kUnix)) {
    return std::ranges::any_of(sockets, [&](const auto& each) { return each.endpoint().text() == address; });
  }
  const auto where = split(address);
  if (!where) return false;
  std::vector<Endpoint> wanted = {ipv4(INADDR_ANY)};
  if (where->host == "localhost") {
    wanted = {ipv4(INADDR_LOOPBACK)};
  } else if (!where->host.empty()) {
    const auto endpoints = resolve(where->host, AI_NUMERICHOST);
    if (!endpoints) return false;
    wanted = *endpoints;
  }
  return std::ranges::any_of(sockets, [&](const ListenSocket& socket) {
    return takes(socket.endpoint(), with_port(wanted.front(), where->port));
  });
}

Result<Listening> listen_on(std::string_view address) {
  if (address.starts_with(kUnix)) {
    const auto endpoint = unix_endpoint(address);
    if (!endpoint) return endpoint.error();
    Listening listening;
    if (const auto added = add_to(listening, *endpoint); !added) return added.error();
    return listening;
  }
  const auto where = split(address);
  if (!where) return where.error();
  if (where->host.empty()) return listen_everywhere(where->port);
  const auto endpoints = endpoints_of(where->host);
  if (!endpoints) return endpoints.error().with("listen address \"" + std::string(address) + "\"");
  return where->port == 0 ? listen_on_any_port(*endpoints) : listen_on_all(*endpoints, where->port);
}

}  // namespace gpumeter
