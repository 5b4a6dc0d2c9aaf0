#include "daemon/profiles/service_search.hpp"

#include <algorithm>
#include <utility>

namespace gpumeter {

using profiles::PortHolder;

Result<profiles::Ports> ServiceSearch::find() {
  Result<profiles::Ports> found = ports_.find();
  if (!found) return found;
  if (const Result<Done> added = sockets_.find(*found); !added) return added.error();
  return found;
}

Nanoseconds ServiceSearch::turn() {
  Result<profiles::Ports> found = find();
  const std::string error = found ? "" : found.error().message();
  if (error != std::exchange(error_, error) && !error.empty()) {
    log_.warn("the listening sockets are not known; jobs with a profiler service cannot be profiled",
              {{"error", error}});
  }
  profiles::Ports now;
  if (found) now = *std::move(found);
  log_changes(now);
  log_unused(now);
  if (now.holders != known_.holders) take_(now.holders);
  known_ = std::move(now);
  return kEvery;
}

void ServiceSearch::log_changes(const profiles::Ports& now) {
  for (const PortHolder& each : now.holders) {
    if (std::ranges::find(known_.holders, each) != known_.holders.end()) continue;
    const bool has_port = each.socket.empty();
    log_.info(
        "a process with a profiler service can be profiled",
        {{"pid", std::to_string(each.process.pid)},
         {has_port ? "port" : "socket", has_port ? std::to_string(each.listener.port) : each.socket},
         {"uid", std::to_string(each.process.uid)},
         {"trace", each.is_debug_server || each.has_safe_host_trace ? "host and device" : "device only"}});
  }
}

void ServiceSearch::log_unused(const profiles::Ports& now) {
  constexpr const char* kHidden =
      "its process is not known; this needs root or CAP_SYS_PTRACE (the drop-in process.conf)";
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

}  // namespace gpumeter
