#include "collectors/profiles/debug_door.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include "collectors/profiles/kineto_wire.hpp"

namespace gpumeter::profiles {
namespace {

/// A socket whose connect() may be under way.
Result<Descriptor> connecting(const tcp::Listener& listener) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(listener.port);
  v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(listener.port);
  v6.sin6_addr = in6addr_loopback;
  const auto* const address =
      listener.is_ip6() ? reinterpret_cast<const sockaddr*>(&v6) : reinterpret_cast<const sockaddr*>(&v4);
  const socklen_t length = listener.is_ip6() ? sizeof v6 : sizeof v4;
  Descriptor out(::socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (out && (::connect(out.number(), address, length) == 0 || errno == EINPROGRESS)) return out;
  return Error("port " + std::to_string(listener.port) + ": " + std::generic_category().message(errno));
}

}  // namespace

std::string debug_request(Nanoseconds duration) {
  std::array<char, 32> seconds{};
  std::snprintf(seconds.data(), seconds.size(), "%.3f", to_seconds(duration));
  return "POST /handler/torch_profile?duration=" + std::string(seconds.data()) +
         " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
}

void DebugDoor::found(const std::vector<PortHolder>& servers) {
  servers_.clear();
  for (const PortHolder& server : servers) servers_.try_emplace(server.process.pid, server);
}

std::vector<Process> DebugDoor::processes() const {
  std::vector<Process> all;
  for (const auto& [pid, server] : servers_) all.push_back(server.process);
  return all;
}

Result<Done> DebugDoor::ask(int pid, const Order& order, Nanoseconds) {
  const auto server = servers_.find(pid);
  if (server == servers_.end()) return Error("it no longer listens on its port");
  if (calls_.contains(pid)) return Error("another request for it is under way");
  if (order.extent.steps) return Error("PyTorch's debug server counts no steps; ask for seconds");
  if (!server->second.socket.empty()) {
    calls_[pid];
    return Done{};
  }
  const tcp::Listener& listener = server->second.listener;
  if (check_) {
    if (Result<Done> checked = check_(listener); !checked) return checked;
  }
  Result<Descriptor> connection = connecting(listener);
  if (!connection) return connection.error();
  calls_[pid].connection = *std::move(connection);
  return Done{};
}

std::uint32_t DebugDoor::owner(int pid) const {
  const auto server = servers_.find(pid);
  return server == servers_.end() ? static_cast<std::uint32_t>(-1) : server->second.process.uid;
}

std::string DebugDoor::socket(int pid) const {
  const auto server = servers_.find(pid);
  return server == servers_.end() ? "" : server->second.socket;
}

bool DebugDoor::serves_conditions(int pid) const noexcept {
  const auto server = servers_.find(pid);
  return serves_conditions_ && server != servers_.end() && server->second.may_connect;
}

Descriptor DebugDoor::connection(int pid) {
  const auto call = calls_.find(pid);
  return call == calls_.end() ? Descriptor() : std::move(call->second.connection);
}

void DebugDoor::ended(int pid, const std::string& error) {
  const auto call = calls_.find(pid);
  if (call == calls_.end() || call->second.progress.stage != Stage::taken) return;
  call->second.progress = error.empty() ? Progress{Stage::done, {}} : Progress{Stage::failed, error};
}

Progress DebugDoor::progress(int pid) const {
  const auto call = calls_.find(pid);
  return call == calls_.end() ? Progress() : call->second.progress;
}

std::string DebugDoor::file_of(const Order& order, int pid, int) const {
  return kineto::file_of(order.path, pid);
}

}  // namespace gpumeter::profiles
