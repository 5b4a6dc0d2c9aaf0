#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "collectors/api/result.hpp"
#include "exporter/listen_socket.hpp"
#include "exporter/routes.hpp"

struct MHD_Daemon;

namespace gpumeter {

/// Requests answered so far, by status code; health probes aside, which would drown the scrapes.
using HttpCounts = std::vector<std::pair<unsigned, std::uint64_t>>;

/// Serves the routes on every listener, by libmicrohttpd with threads of its own ("http"). Slow readers
/// hold a connection, never a thread.
class HttpServer {
 public:
  /// Serves from when it returns. `threads` is for each listener. The routes outlive the server.
  static Result<std::unique_ptr<HttpServer>> start(std::vector<ListenSocket> listeners, Routes& routes,
                                                   unsigned threads = 2);
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  ~HttpServer();

  /// Takes no more connections, answers what is under way, and closes. A listening socket that another
  /// process has as well stays good there.
  void stop();

  /// Where it can be reached, with the ports that came out.
  std::span<const Endpoint> endpoints() const noexcept { return endpoints_; }
  HttpCounts counts() const;

 private:
  class Handler;
  struct Callbacks;
  struct StopDaemon {
    void operator()(MHD_Daemon* daemon) const;
  };
  using DaemonPtr = std::unique_ptr<MHD_Daemon, StopDaemon>;

  explicit HttpServer(Routes& routes);
  unsigned connections() const;
  static DaemonPtr serve(ListenSocket& listener, Handler& handler, unsigned threads);

  std::vector<Endpoint> endpoints_;
  std::unique_ptr<Handler> handler_;
  std::vector<DaemonPtr> daemons_;
};

}  // namespace gpumeter
