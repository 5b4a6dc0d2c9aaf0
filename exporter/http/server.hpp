#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "exporter/http/routes.hpp"
#include "exporter/listen/socket.hpp"

struct MHD_Daemon;

namespace gpumeter {

class Descriptor;
class UserOwners;
class WebAccess;

/// Requests answered so far, by status code. Health probes are omitted, because they would outnumber the
/// scrapes.
using HttpCounts = std::vector<std::pair<unsigned, std::uint64_t>>;

/// Serves the routes on every listener, with libmicrohttpd's own threads ("http"). A slow reader occupies a
/// connection, never a thread.
class HttpServer {
 public:
  /// The server accepts requests from when start() returns. `threads` is the number per listener; a private
  /// one has a single thread, and neither TLS nor users. The routes,
  /// `access` and `owners` must outlive the server. `access` null: everybody is served, by plain HTTP. If its
  /// settings have TLS at the start, every other listener speaks only TLS, and each connection uses the
  /// context that is in force when it is opened. `owners`: of the clients of Unix sockets; null: each uid is
  /// its own.
  static Result<std::unique_ptr<HttpServer>> start(std::vector<ListenSocket> listeners, Routes& routes,
                                                   unsigned threads = 2, WebAccess* access = nullptr,
                                                   const UserOwners* owners = nullptr);
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  ~HttpServer();

  /// Accepts no more connections, finishes the answers under way, and closes. A listening socket that another
  /// process also holds stays usable there.
  void stop();

  /// Checks that each thread of each listener accepts a connection in time, whatever clients do. The Error
  /// names the listener. Blocks for `timeout` at most. Call it on the thread that calls stop().
  Result<Done> probe(std::chrono::milliseconds timeout) const;

  /// Ends connections past their deadline, and those whose client left. Call it four times a second, on a
  /// thread that never hangs.
  void look();

  /// The addresses on which the server listens, with their actual ports.
  std::span<const Endpoint> endpoints() const noexcept { return endpoints_; }
  HttpCounts counts() const;
  /// Clients take more descriptors than the process may open: connections ended for it within a minute.
  bool lacks_descriptors() const noexcept;

 private:
  class Handler;
  struct StopDaemon {
    void operator()(MHD_Daemon* daemon) const;
  };
  using DaemonPtr = std::unique_ptr<MHD_Daemon, StopDaemon>;

  HttpServer(Routes& routes, unsigned threads, WebAccess* access, const UserOwners* owners);
  /// As probe(), also without listeners.
  Result<Done> roll_call(std::chrono::milliseconds timeout) const;
  /// Gives the thread a connection of the roll call. Returns the other end, on which its answer arrives.
  static Result<Descriptor> call(MHD_Daemon& daemon, unsigned thread, unsigned threads);
  /// Stops accepting connections. The listening sockets close with the result.
  std::vector<ListenSocket> quiesce();
  unsigned connections() const;
  unsigned threads_of(const ListenSocket& listener) const noexcept {
    return listener.is_private() ? 1 : threads_;
  }
  static DaemonPtr serve(ListenSocket& listener, Handler& handler, unsigned threads);

  const SystemClock clock_;
  const unsigned threads_;
  std::vector<Endpoint> endpoints_;
  std::vector<ListenSocket> files_;  ///< released sockets: they remove the files of Unix sockets
  std::unique_ptr<Handler> handler_;
  std::vector<DaemonPtr> daemons_;
};

}  // namespace gpumeter
