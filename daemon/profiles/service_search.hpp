#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "collectors/profiles/ports.hpp"
#include "daemon/log/log.hpp"

namespace gpumeter {

/// Looks for the processes that listen on `profiles.profiler_ports`, and logs what changed. Thread
/// "profile-ports".
class ServiceSearch {
 public:
  using Take = std::function<void(std::vector<profiles::PortHolder> services)>;
  /// Between two looks.
  static constexpr Nanoseconds kEvery = std::chrono::seconds(5);

  /// `log` must outlive the thread.
  ServiceSearch(profiles::PortSearch search, Take take, Log& log)
      : search_(std::move(search)), take_(std::move(take)), log_(log) {}

  /// Returns the pause until the next turn.
  Nanoseconds turn();

 private:
  void log_changes(const profiles::Ports& now);

  profiles::PortSearch search_;
  const Take take_;
  Log& log_;
  profiles::Ports known_;
  std::set<std::uint16_t> unused_;  ///< ports that a warning has named
  std::string error_;
};

}  // namespace gpumeter
