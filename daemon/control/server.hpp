#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/descriptor.hpp"
#include "base/log.hpp"
#include "base/result.hpp"
#include "base/worker.hpp"

namespace gpumeter::control {

/// The daemon's control socket, `control.sock` in the state folder. A request is one line, and so is the
/// answer: `forget UUID` is answered by `ok` or `error TEXT`.

inline constexpr std::string_view kForget = "forget ";
inline constexpr std::string_view kOk = "ok";
inline constexpr std::string_view kError = "error ";

/// The longest line; a longer one ends the connection.
inline constexpr std::size_t kMostBytes = 4096;

/// The limit for each read and write of a connection.
inline constexpr std::chrono::seconds kPatience{2};

std::string path_in(const std::string& folder);
/// Returns an Error if the path is too long for a socket's address.
Result<sockaddr_un> address_in(const std::string& folder);

/// Returns a stream socket that no program started by this process inherits.
Result<Descriptor> open_socket();

/// Limits reads and writes to kPatience each.
void limit_time(const Descriptor& connection) noexcept;

/// Reads up to the first line feed, which is not returned.
Result<std::string> read_line(const Descriptor& connection);
Result<Done> write_line(const Descriptor& connection, const std::string& line);

}  // namespace gpumeter::control

namespace gpumeter {

/// Receives the administrator's requests on the control socket. Only root and the
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
