#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/result.hpp"
#include "base/worker.hpp"

namespace gpumeter {

/// Receives the administrator's requests on the control socket (daemon/control/socket.hpp). Only root and the
/// daemon's own user may send; HTTP clients cannot. Requests are answered on a separate thread ("control"),
/// because the state folder may hang.
class ControlServer {
 public:
  /// Called on the thread "control". The Error is the answer to the request.
  using Forget = std::function<Result<Done>(const std::string& uuid)>;

  /// `folder` is paths.state. `clock` and `log` must live until stop() returns true.
  ControlServer(std::string folder, const Clock& clock, Log& log, Forget forget);
  ~ControlServer();
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

  Result<Done> start();
  /// Returns false if the folder hangs and the thread was left behind at `deadline` (monotonic).
  bool stop(Nanoseconds deadline);

 private:
  class Listener;

  const std::shared_ptr<Listener> listener_;  ///< shared with the thread, which may outlive this object
  Worker worker_;
};

}  // namespace gpumeter
