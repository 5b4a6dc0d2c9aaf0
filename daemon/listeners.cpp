#include "daemon/listeners.hpp"

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <set>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/text.hpp"
#include "collectors/sources/tcp.hpp"

namespace gpumeter {
namespace {

void warn_of_unused_addresses(const HttpSettings& web, std::span<const ListenSocket> sockets, Log& log) {
  if (web.listen == HttpSettings{}.listen) return;
  for (const std::string& address : web.listen) {
    if (is_served(address, sockets)) continue;
    log.warn("web.listen is not used: gpumeter.socket holds the port, for its own addresses",
             {{"address", address},
              {"hint",
               "set the addresses by systemctl edit gpumeter.socket, or switch it off: systemctl disable "
               "--now gpumeter.socket && systemctl restart gpumeter"}});
  }
}

Result<std::vector<ListenSocket>> adopt(const std::vector<systemd::PassedSocket>& passed) {
  if (Result<Done> usable = systemd::check_http(passed); !usable) return usable.error();
  std::vector<ListenSocket> listeners;
  for (const systemd::PassedSocket& socket : passed) {
    Result<ListenSocket> listener = ListenSocket::adopt(socket.fd);
    if (!listener) return listener.error();
    listeners.push_back(*std::move(listener));
  }
  return listeners;
}

/// Who listens on the port of the address already, as far as this user may see it, and what to do.
std::string port_advice(std::string_view address, const std::string& procfs) {
  const auto port = parse_number<std::uint16_t>(address.substr(address.rfind(':') + 1));
  const auto listeners = tcp::listeners(procfs);
  std::set<std::uint64_t> inodes;
  for (const tcp::Listener& each : listeners ? *listeners : std::vector<tcp::Listener>()) {
    if (each.port == port) inodes.insert(each.inode);
  }
  std::string who = "another process";
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(procfs, ignored)) {
    const auto pid = parse_number<int>(entry.path().filename().string());
    if (!pid || tcp::sockets_of(procfs, *pid, inodes).sockets.empty()) continue;
    std::getline(std::ifstream(entry.path() / "comm"), who);
    who += " (process " + std::to_string(*pid) + ")";
    break;
  }
  return " by " + who + "; stop it, or choose another address by web.listen or --web.listen-address";
}

Result<std::vector<ListenSocket>> bind(const std::vector<std::string>& addresses, const std::string& procfs,
                                       Log& log) {
  std::vector<ListenSocket> listeners;
  for (const std::string& address : addresses) {
    Result<Listening> listening = listen_on(address);
    if (!listening) {
      const std::string why = listening.error().message();
      const bool is_taken = why.ends_with(std::generic_category().message(EADDRINUSE));
      return Error(is_taken && is_host_and_port(address) ? why + port_advice(address, procfs) : why);
    }
    for (const std::string& note : listening->notes) log.warn(note);
    for (ListenSocket& socket : listening->sockets) listeners.push_back(std::move(socket));
  }
  return listeners;
}

}  // namespace

Result<std::vector<ListenSocket>> open_listeners(const HttpSettings& web,
                                                 const std::vector<systemd::PassedSocket>& passed,
                                                 bool only_passed, const std::string& procfs, Log& log) {
  if (!only_passed && passed.empty()) return bind(web.listen, procfs, log);
  Result<std::vector<ListenSocket>> listeners = adopt(passed);
  if (listeners) warn_of_unused_addresses(web, *listeners, log);
  return listeners;
}

}  // namespace gpumeter
