#include "exporter/http/server.hpp"

#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <system_error>
#include <thread>
#include <utility>

#include "base/descriptor.hpp"
#include "exporter/access/access.hpp"
#include "exporter/http/handler.hpp"

namespace gpumeter {
namespace {

/// A thread with this many connections accepts no more. The book's own limit is lower (HttpLimits), which
/// leaves room for the next client and for the probe. The gap is needed because the library accepts ten at a
/// time and closes an ended connection one turn later.
constexpr unsigned kMaxConnectionsOfOneThread = 224;
/// Limit for the request line and headers; a longer request is answered 431. The library clears this much
/// memory after each request, which is most of the cost of a small answer.
constexpr std::size_t kMaxRequestBytes = std::size_t{16} * 1024;

/// How long stop() waits for the answers under way. Idle connections count too, so stop() waits this long if
/// any stay open.
constexpr auto kLastAnswers = std::chrono::milliseconds(200);
constexpr auto kLook = std::chrono::milliseconds(5);

/// How long stop() waits for the threads to stand still. A thread makes one answer at a time, which takes
/// 40 ms for a page of 17 MB.
constexpr auto kStandstill = std::chrono::milliseconds(300);

Error last_error() { return Error(std::generic_category().message(errno)); }

/// Waits for the byte of a thread that was called.
bool has_answered(const Descriptor& called, std::chrono::steady_clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  pollfd poller{called.number(), POLLIN, 0};
  char byte = 0;
  return poll(&poller, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0))) == 1 &&
         recv(called.number(), &byte, 1, MSG_DONTWAIT) == 1;
}

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::start(std::vector<ListenSocket> listeners, Routes& routes,
                                                      unsigned threads, WebAccess* access,
                                                      const UserOwners* owners) {
  std::unique_ptr<HttpServer> server(new HttpServer(routes, threads, access, owners));
  if (Result<Done> started = server->handler_->renderings().start(); !started) return started.error();
  for (ListenSocket& listener : listeners) {
    const Endpoint endpoint = listener.endpoint();
    DaemonPtr daemon = serve(listener, *server->handler_, server->threads_of(listener));
    if (daemon == nullptr) {
      return Error("cannot serve HTTP on " + endpoint.text() + ": " + std::generic_category().message(errno));
    }
    server->daemons_.push_back(std::move(daemon));
    server->endpoints_.push_back(endpoint);
    server->files_.push_back(std::move(listener));
  }
  return server;
}

HttpServer::DaemonPtr HttpServer::serve(ListenSocket& listener, Handler& handler, unsigned threads) {
  // The library rejects a pool of one thread.
  const unsigned pool = threads > 1 ? threads : 0;
  const bool is_tls = handler.is_tls() && !listener.is_private();
  const auto on_connection = listener.is_private() ? Handler::on_private_connection : Handler::on_connection;
  // With epoll the library (0.9.71 to 1.0.1) calls gnutls_handshake() without a pause once a byte has
  // arrived: MHD_run_tls_handshake_() does not note that the socket is empty again. poll() looks at the
  // socket itself.
  const unsigned waits = is_tls ? MHD_USE_TLS | MHD_USE_POLL : MHD_USE_EPOLL;
  const unsigned flags =
      waits | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_ITC | MHD_USE_ERROR_LOG | MHD_ALLOW_SUSPEND_RESUME;
  MHD_OptionItem tls_options[] = {
      // The library requires a certificate, or a function that returns one, for sessions without credentials
      // of their own. There are none: on_connection() sets them.
      {MHD_OPTION_HTTPS_CERT_CALLBACK, 0, reinterpret_cast<void*>(Handler::on_missing_certificate)},
      {MHD_OPTION_END, 0, nullptr}};
  DaemonPtr daemon(MHD_start_daemon(
      // Without MHD_USE_ITC the library wakes its threads by shutdown() of the listening socket. A socket
      // from systemd would then be unusable for the next process.
      flags, 0, nullptr, nullptr, Handler::on_request, &handler, MHD_OPTION_EXTERNAL_LOGGER,
      Handler::on_message, &handler, MHD_OPTION_LISTEN_SOCKET, listener.descriptor(),
      MHD_OPTION_THREAD_POOL_SIZE, pool, MHD_OPTION_CONNECTION_LIMIT, threads * kMaxConnectionsOfOneThread,
      MHD_OPTION_CONNECTION_MEMORY_LIMIT, kMaxRequestBytes, MHD_OPTION_URI_LOG_CALLBACK,
      Handler::on_request_line, &handler, MHD_OPTION_NOTIFY_COMPLETED, Handler::on_completed, &handler,
      MHD_OPTION_NOTIFY_CONNECTION, on_connection, &handler, MHD_OPTION_ARRAY,
      is_tls ? tls_options : tls_options + 1, MHD_OPTION_END));
  if (daemon != nullptr) listener.release();  // the library closes it when it stops
  return daemon;
}

HttpServer::HttpServer(Routes& routes, unsigned threads, WebAccess* access, const UserOwners* owners)
    : threads_(threads),
      access_(access),
      handler_(std::make_unique<Handler>(routes, clock_, access, owners)) {}

// The library cannot stop while a request is paused.
HttpServer::~HttpServer() {
  if (access_ != nullptr) access_->close();
  handler_->renderings().close();
}

void HttpServer::look() { handler_->connections().look(); }

// A socket from systemd outlives this process. The next process serves its queued connections; this one must
// answer the connections it has accepted.
void HttpServer::stop() {
  if (access_ != nullptr) access_->close();  // the library cannot stop while a request is paused
  handler_->renderings().close();
  const std::vector<ListenSocket> listeners = quiesce();
  const auto end = std::chrono::steady_clock::now() + kLastAnswers;
  do {
    std::this_thread::sleep_for(kLook);
  } while (connections() > 0 && std::chrono::steady_clock::now() < end);
  daemons_.clear();
  files_.clear();
  handler_->renderings().stop();
}

// If a thread does not answer in time, connections are accepted until the library stops.
std::vector<ListenSocket> HttpServer::quiesce() {
  std::vector<ListenSocket> listeners;
  handler_->roll_call().hold();
  if (roll_call(kStandstill)) {
    for (const DaemonPtr& daemon : daemons_) {
      auto listener = ListenSocket::adopt(MHD_quiesce_daemon(daemon.get()));
      if (listener) listeners.push_back(*std::move(listener));
    }
  }
  handler_->roll_call().release();
  return listeners;
}

Result<Done> HttpServer::probe(std::chrono::milliseconds timeout) const {
  if (daemons_.empty()) return Error("HTTP is not served");
  return roll_call(timeout);
}

// All threads are called before the first answer is awaited.
Result<Done> HttpServer::roll_call(std::chrono::milliseconds timeout) const {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  std::vector<std::pair<Descriptor, const Endpoint*>> called;
  const auto failed = [](const Error& error, const Endpoint& endpoint) {
    return error.with("HTTP listener " + endpoint.text());
  };
  for (std::size_t i = 0; i < daemons_.size(); ++i) {
    const unsigned threads = threads_of(files_[i]);
    for (unsigned thread = 0; thread < threads; ++thread) {
      Result<Descriptor> end = call(*daemons_[i], thread, threads);
      if (!end) return failed(end.error(), endpoints_[i]);
      called.emplace_back(*std::move(end), &endpoints_[i]);
    }
  }
  for (const auto& [end, endpoint] : called) {
    if (!has_answered(end, deadline)) return failed(Error("no answer before the deadline"), *endpoint);
  }
  return Done{};
}

// The call bypasses the listening socket's queue and the clients' connections. The library assigns a
// connection to the thread whose number is the descriptor's remainder.
Result<Descriptor> HttpServer::call(MHD_Daemon& daemon, unsigned thread, unsigned threads) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) return last_error();
  Descriptor caller(ends[0]);
  Descriptor called(ends[1]);
  while (called && static_cast<unsigned>(called.number()) % threads != thread) {
    called = Descriptor(fcntl(called.number(), F_DUPFD_CLOEXEC, called.number() + 1));
  }
  if (!called) return last_error();
  const bool is_taken = MHD_add_connection(&daemon, called.release(), &RollCall::kAddress,
                                           sizeof RollCall::kAddress) == MHD_YES;
  if (!is_taken) return Error("the server did not accept the connection");
  return caller;
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

bool HttpServer::lacks_descriptors() const noexcept { return handler_->connections().lacks_descriptors(); }

}  // namespace gpumeter
