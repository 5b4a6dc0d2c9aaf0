#include "exporter/http_server.hpp"

#include <errno.h>
#include <microhttpd.h>
#include <pthread.h>

#include <chrono>
#include <cstddef>
#include <system_error>
#include <thread>
#include <utility>

#include "exporter/http_handler.hpp"

namespace gpumeter {
namespace {

/// A handful of scrapers and a few people; one listener cannot take all of the daemon's descriptors.
constexpr unsigned kMaxConnections = 256;
/// From one remote address. None on a local listener, where everybody has the same one.
constexpr unsigned kMaxConnectionsOfOneAddress = 32;
/// A connection that neither sends nor takes a byte; scrapers keep theirs over a 15 s interval.
constexpr unsigned kIdleSeconds = 30;
/// Request line and headers; more is answered 431. The library clears this much after each request, which
/// is the larger part of what a small answer costs it.
constexpr std::size_t kMaxRequestBytes = std::size_t{16} * 1024;

/// How long stop() waits for the answers under way; connections that are kept open idle are there all along.
constexpr auto kLastAnswers = std::chrono::milliseconds(200);
constexpr auto kLook = std::chrono::milliseconds(5);

/// The library makes its threads itself; each gets its name with its first connection.
void on_connection(void*, MHD_Connection*, void**, MHD_ConnectionNotificationCode) noexcept {
  thread_local const int named = pthread_setname_np(pthread_self(), "http");
  static_cast<void>(named);
}

}  // namespace

/// The library calls on_request() with the headers, and again after the body, of which there is none: a
/// request that announces one is answered at the first call, before a byte of it is read. (To answer all
/// there would be simpler, and would cost every scraper its connection: after an early answer the library
/// closes.) `*request` says how far it is: null, the connection once it was seen, the handler once answered.
struct HttpServer::Callbacks {
  // NOLINTNEXTLINE(readability-function-size): the library's parameters
  static MHD_Result on_request(void* handler, MHD_Connection* connection, const char* path,
                               const char* method, const char*, const char*, std::size_t* upload_size,
                               void** request) noexcept {
    *upload_size = 0;
    const bool first_call = *request == nullptr;
    *request = connection;
    if (first_call && !Handler::must_answer_unread(connection, method)) return MHD_YES;
    *request = handler;
    try {
      return static_cast<Handler*>(handler)->answer(connection, path, method) ? MHD_YES : MHD_NO;
    } catch (...) {
      return MHD_NO;
    }
  }

  static void on_completed(void* handler, MHD_Connection*, void** request,
                           MHD_RequestTerminationCode) noexcept {
    if (*request == handler) static_cast<Handler*>(handler)->completed();
    *request = nullptr;
  }
};

Result<std::unique_ptr<HttpServer>> HttpServer::start(std::vector<ListenSocket> listeners, Routes& routes,
                                                      unsigned threads) {
  std::unique_ptr<HttpServer> server(new HttpServer(routes));
  for (ListenSocket& listener : listeners) {
    const Endpoint endpoint = listener.endpoint();
    DaemonPtr daemon = serve(listener, *server->handler_, threads);
    if (daemon == nullptr) {
      return Error("cannot serve HTTP on " + endpoint.text() + ": " + std::generic_category().message(errno));
    }
    server->daemons_.push_back(std::move(daemon));
    server->endpoints_.push_back(endpoint);
  }
  return server;
}

HttpServer::DaemonPtr HttpServer::serve(ListenSocket& listener, Handler& handler, unsigned threads) {
  // A pool of one is no pool to the library, and refused.
  const unsigned pool = threads > 1 ? threads : 0;
  const unsigned of_one_address = listener.endpoint().is_local() ? 0 : kMaxConnectionsOfOneAddress;
  DaemonPtr daemon(MHD_start_daemon(
      // Without MHD_USE_ITC the library wakes its threads by shutdown() of the listening socket, which is
      // also systemd's where systemd passed it, and could not be listened on again.
      MHD_USE_EPOLL | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_ITC, 0, nullptr, nullptr,
      Callbacks::on_request, &handler, MHD_OPTION_LISTEN_SOCKET, listener.descriptor(),
      MHD_OPTION_THREAD_POOL_SIZE, pool, MHD_OPTION_CONNECTION_LIMIT, kMaxConnections,
      MHD_OPTION_PER_IP_CONNECTION_LIMIT, of_one_address, MHD_OPTION_CONNECTION_TIMEOUT, kIdleSeconds,
      MHD_OPTION_CONNECTION_MEMORY_LIMIT, kMaxRequestBytes, MHD_OPTION_NOTIFY_COMPLETED,
      Callbacks::on_completed, &handler, MHD_OPTION_NOTIFY_CONNECTION, on_connection, nullptr,
      MHD_OPTION_END));
  if (daemon != nullptr) listener.release();  // closed by the library when it stops
  return daemon;
}

HttpServer::HttpServer(Routes& routes) : handler_(std::make_unique<Handler>(routes)) {}

HttpServer::~HttpServer() = default;

// A socket that systemd passed outlives this: what is not taken from it is the next process's to answer, what
// is taken has to be answered here.
void HttpServer::stop() {
  std::vector<Result<ListenSocket>> listeners;
  for (const DaemonPtr& daemon : daemons_) {
    listeners.push_back(ListenSocket::adopt(MHD_quiesce_daemon(daemon.get())));
  }
  const auto end = std::chrono::steady_clock::now() + kLastAnswers;
  do {
    std::this_thread::sleep_for(kLook);
  } while (connections() > 0 && std::chrono::steady_clock::now() < end);
  daemons_.clear();
}

unsigned HttpServer::connections() const {
  unsigned count = 0;
  for (const DaemonPtr& daemon : daemons_) {
    const MHD_DaemonInfo* info = MHD_get_daemon_info(daemon.get(), MHD_DAEMON_INFO_CURRENT_CONNECTIONS);
    count += info == nullptr ? 0 : info->num_connections;
  }
  return count;
}

void HttpServer::StopDaemon::operator()(MHD_Daemon* daemon) const { MHD_stop_daemon(daemon); }

HttpCounts HttpServer::counts() const { return handler_->counts(); }

}  // namespace gpumeter
