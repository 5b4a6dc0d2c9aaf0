#include "daemon/listeners.hpp"

#include <span>
#include <string>
#include <utility>

#include "exporter/listen/socket.hpp"

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

Result<std::vector<ListenSocket>> bind(const std::vector<std::string>& addresses, Log& log) {
  std::vector<ListenSocket> listeners;
  for (const std::string& address : addresses) {
    Result<Listening> listening = listen_on(address);
    if (!listening) return listening.error();
    for (const std::string& note : listening->notes) log.warn(note);
    for (ListenSocket& socket : listening->sockets) listeners.push_back(std::move(socket));
  }
  return listeners;
}

}  // namespace

// Passed sockets are used without the flag, so that gpumeter.socket alone enables and disables them. Its
// addresses cannot be bound a second time.
Result<std::vector<ListenSocket>> open_listeners(const HttpSettings& web,
                                                 const std::vector<systemd::PassedSocket>& passed,
                                                 bool only_passed, Log& log) {
  if (!only_passed && passed.empty()) return bind(web.listen, log);
  Result<std::vector<ListenSocket>> listeners = adopt(passed);
  if (listeners) warn_of_unused_addresses(web, *listeners, log);
  return listeners;
}

}  // namespace gpumeter
