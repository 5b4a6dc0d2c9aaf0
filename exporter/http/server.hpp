#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "base/worker.hpp"
#include "exporter/http/listen_socket.hpp"
#include "exporter/http/routes.hpp"

struct MHD_Daemon;

namespace gpumeter {

class HttpProbe;

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

  /// Whether each thread of each listener answers /-/healthy in time, whatever clients do: an Error names the
  /// listener. Blocks for `timeout` at the most. On the thread that calls stop().
  Result<Done> probe(std::chrono::milliseconds timeout) const;

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

  HttpServer(Routes& routes, unsigned threads);
  Result<HttpProbe> ask(MHD_Daemon& daemon, unsigned thread) const;
  unsigned connections() const;
  Result<Done> start_reaper();
  static DaemonPtr serve(ListenSocket& listener, Handler& handler, unsigned threads);

  const SystemClock clock_;
  const unsigned threads_;
  std::vector<Endpoint> endpoints_;
  std::unique_ptr<Handler> handler_;
  std::vector<DaemonPtr> daemons_;
  Worker reaper_{clock_};  ///< "http-reaper" looks through the connections four times a second
};

}  // namespace gpumeter
