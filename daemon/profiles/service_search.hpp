#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "collectors/profiles/search/ports.hpp"
#include "collectors/profiles/search/sockets.hpp"

namespace gpumeter {

/// Looks for the processes that listen on `profiles.profiler_ports` and `profiles.worker_sockets`, and logs
/// what changed. Thread "profile-ports".
class ServiceSearch {
 public:
  using Take = std::function<void(std::vector<profiles::PortHolder> services)>;
  /// Between two looks.
  static constexpr Nanoseconds kEvery = std::chrono::seconds(5);

  /// `log` must outlive the thread.
  ServiceSearch(profiles::PortSearch ports, profiles::SocketSearch sockets, Take take, Log& log)
      : ports_(std::move(ports)), sockets_(std::move(sockets)), take_(std::move(take)), log_(log) {}

  /// Returns the pause until the next turn.
  Nanoseconds turn();

 private:
  Result<profiles::Ports> find();
  void log_changes(const profiles::Ports& now);
  void log_unused(const profiles::Ports& now);

  profiles::PortSearch ports_;
  profiles::SocketSearch sockets_;
  const Take take_;
  Log& log_;
  profiles::Ports known_;
  std::set<std::string> unused_;  ///< ports and sockets that a warning has named
  std::string error_;
};

}  // namespace gpumeter
