#include "daemon/profiles/service_search.hpp"

#include <algorithm>
#include <utility>

namespace gpumeter {

using profiles::PortHolder;

Nanoseconds ServiceSearch::turn() {
  Result<profiles::Ports> found = search_.find();
  const std::string error = found ? "" : found.error().message();
  if (error != std::exchange(error_, error) && !error.empty()) {
    log_.warn("the listening ports are not known; jobs with a profiler service cannot be profiled",
              {{"error", error}});
  }
  profiles::Ports now;
  if (found) now = *std::move(found);
  log_changes(now);
  if (now.holders != known_.holders) take_(now.holders);
  known_ = std::move(now);
  return kEvery;
}

void ServiceSearch::log_changes(const profiles::Ports& now) {
  for (const PortHolder& each : now.holders) {
    if (std::ranges::find(known_.holders, each) != known_.holders.end()) continue;
    log_.info("a process with a profiler service can be profiled",
              {{"pid", std::to_string(each.process.pid)},
               {"port", std::to_string(each.listener.port)},
               {"uid", std::to_string(each.process.uid)}});
  }
  const auto warn = [this](std::uint16_t port, const char* why) {
    if (!unused_.insert(port).second) return;
    log_.warn("a port of profiles.profiler_ports is not asked",
              {{"port", std::to_string(port)}, {"error", why}});
  };
  for (const std::uint16_t port : now.shared) {
    warn(port, "several processes listen on it, and the kernel chooses who answers; give each its own");
  }
  for (const std::uint16_t port : now.hidden) {
    warn(port, "its process is not known; this needs root or CAP_SYS_PTRACE (the drop-in process.conf)");
  }
  std::erase_if(unused_,
                [&](std::uint16_t port) { return !now.shared.contains(port) && !now.hidden.contains(port); });
}

}  // namespace gpumeter
