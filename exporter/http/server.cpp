#include "exporter/http/server.hpp"

#include <errno.h>
#include <microhttpd.h>
#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <system_error>
#include <thread>
#include <utility>

#include "exporter/access/access.hpp"
#include "exporter/http/callbacks.hpp"
#include "exporter/http/probe.hpp"
#include "exporter/http/standstill.hpp"

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

constexpr auto kReapEvery = std::chrono::milliseconds(250);

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::start(std::vector<ListenSocket> listeners, Routes& routes,
                                                      unsigned threads, WebAccess* access,
                                                      const UserOwners* owners) {
  std::unique_ptr<HttpServer> server(new HttpServer(routes, threads, access, owners));
  if (Result<Done> ready = server->handler_->tls().prepare(); !ready) return ready.error();
  if (Result<Done> started = server->start_reaper(); !started) return started.error();
  if (Result<Done> started = server->handler_->renderings().start(); !started) return started.error();
  for (ListenSocket& listener : listeners) {
    const Endpoint endpoint = listener.endpoint();
    DaemonPtr daemon = serve(listener, *server->handler_, threads);
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
  const bool is_tls = handler.tls().is_on();
  // With epoll the library (0.9.71 to 1.0.1) calls gnutls_handshake() without a pause once a byte has
  // arrived: MHD_run_tls_handshake_() does not note that the socket is empty again. poll() looks at the
  // socket itself.
  const unsigned waits = is_tls ? MHD_USE_TLS | MHD_USE_POLL : MHD_USE_EPOLL;
  const unsigned flags =
      waits | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_ITC | MHD_USE_ERROR_LOG | MHD_ALLOW_SUSPEND_RESUME;
  MHD_OptionItem tls_options[] = {
      // The library requires a certificate, or a function that returns one, for sessions without credentials
      // of their own. There are none: on_connection() sets them.
      {MHD_OPTION_HTTPS_CERT_CALLBACK, 0, reinterpret_cast<void*>(Callbacks::on_missing_certificate)},
      {MHD_OPTION_END, 0, nullptr}};
  DaemonPtr daemon(MHD_start_daemon(
      // Without MHD_USE_ITC the library wakes its threads by shutdown() of the listening socket. A socket
      // from systemd would then be unusable for the next process.
      flags, 0, nullptr, nullptr, Callbacks::on_request, &handler, MHD_OPTION_EXTERNAL_LOGGER,
      Callbacks::on_message, &handler, MHD_OPTION_LISTEN_SOCKET, listener.descriptor(),
      MHD_OPTION_THREAD_POOL_SIZE, pool, MHD_OPTION_CONNECTION_LIMIT, threads * kMaxConnectionsOfOneThread,
      MHD_OPTION_CONNECTION_MEMORY_LIMIT, kMaxRequestBytes, MHD_OPTION_URI_LOG_CALLBACK,
      Callbacks::on_request_line, &handler, MHD_OPTION_NOTIFY_COMPLETED, Callbacks::on_completed, &handler,
      MHD_OPTION_NOTIFY_CONNECTION, Callbacks::on_connection, &handler, MHD_OPTION_ARRAY,
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
  reaper_.stop();
}

Result<Done> HttpServer::start_reaper() {
  return reaper_.start("http-reaper", [this] {
    handler_->connections().look();
    return kReapEvery;
  });
}

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
  reaper_.stop();
  handler_->renderings().stop();
}

// If a thread does not stand still in time, connections are accepted until the library stops.
std::vector<ListenSocket> HttpServer::quiesce() {
  Standstill& standstill = handler_->standstill();
  std::vector<ListenSocket> listeners;
  std::vector<Result<HttpProbe>> asked;
  standstill.begin();
  for (const DaemonPtr& daemon : daemons_) {
    for (unsigned thread = 0; thread < threads_; ++thread) {
      asked.push_back(ask(*daemon, thread, Standstill::kAddress));
    }
  }
  if (standstill.holds(static_cast<unsigned>(asked.size()), kStandstill)) {
    for (const DaemonPtr& daemon : daemons_) {
      auto listener = ListenSocket::adopt(MHD_quiesce_daemon(daemon.get()));
      if (listener) listeners.push_back(*std::move(listener));
    }
  }
  standstill.end();
  return listeners;
}

// All probes are sent before the first answer is awaited.
Result<Done> HttpServer::probe(std::chrono::milliseconds timeout) const {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  if (daemons_.empty()) return Error("HTTP is not served");
  std::vector<std::pair<HttpProbe, const Endpoint*>> probes;
  for (std::size_t i = 0; i < daemons_.size(); ++i) {
    const auto failed = [&](const Error& error) {
      return error.with("HTTP listener " + endpoints_[i].text());
    };
    for (unsigned thread = 0; thread < threads_; ++thread) {
      Result<HttpProbe> probe = ask(*daemons_[i], thread, kProbeAddress);
      if (!probe) return failed(probe.error());
      probes.emplace_back(*std::move(probe), &endpoints_[i]);
    }
  }
  for (const auto& [probe, endpoint] : probes) {
    const Result<Done> answer = probe.answer(deadline);
    if (!answer) return answer.error().with("HTTP listener " + endpoint->text());
  }
  return Done{};
}

// The library assigns a connection to the thread whose number is the descriptor's remainder.
Result<HttpProbe> HttpServer::ask(MHD_Daemon& daemon, unsigned thread, const sockaddr& as) const {
  const auto serve = [&](int descriptor) {
    return MHD_add_connection(&daemon, descriptor, &as, sizeof as) == MHD_YES;
  };
  return HttpProbe::ask(serve, thread, threads_, handler_->tls().loopback());
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
