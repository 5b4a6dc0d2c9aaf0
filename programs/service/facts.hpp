#pragma once

#include <string>
#include <string_view>

#include "base/log.hpp"
#include "base/result.hpp"
#include "collectors/api/machine.hpp"
#include "programs/client/http.hpp"

namespace gpumeter::service {

/// What a program knows of the machine: it asks the daemon on the API's socket, and publishes the answers as
/// the daemon's parts publish them there. While the daemon does not answer, its last answers stay. One
/// thread.
class Facts {
 public:
  Facts(const std::string& socket, Machine& machine, Log& log);

  /// Asks for the processes and the runs. Blocks for a few seconds at most. Logs when the daemon does not
  /// answer, and when it does again.
  void ask();

 private:
  Result<Done> ask(const std::string& path, Result<Done> (*take)(std::string_view json, Machine& machine));

  const std::string socket_;
  client::HttpClient client_;
  Machine& machine_;
  Log& log_;
  std::string error_;  ///< of the last time; empty: it succeeded
};

/// Publishes Machine::uses, and the runs of the processes on devices, from the body of /api/v1/processes.
Result<Done> take_processes(std::string_view json, Machine& machine);
/// Publishes the other facts of Machine::runs from the body of /api/v1/runs.
Result<Done> take_runs(std::string_view json, Machine& machine);

}  // namespace gpumeter::service
