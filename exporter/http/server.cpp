#include "exporter/http/server.hpp"

#include <errno.h>
#include <fcntl.h>
#include <gnutls/abstract.h>
#include <microhttpd.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <climits>
#include <cstdarg>
#include <cstddef>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "base/descriptor.hpp"
#include "base/mutex.hpp"
#include "exporter/access/access.hpp"
#include "exporter/http/connections.hpp"
#include "exporter/http/event_stream.hpp"
#include "exporter/http/message.hpp"
#include "exporter/http/renderings.hpp"
#include "exporter/tls/context.hpp"

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

using Verdict = Admission::Verdict;

constexpr HttpHeader kUnauthorizedHeaders[] = {{"X-Content-Type-Options", "nosniff"},
                                               {"WWW-Authenticate", "Basic"}};
constexpr HttpHeader kTooManyHeaders[] = {{"X-Content-Type-Options", "nosniff"}, {"Retry-After", "1"}};

/// The bytes are those of exporter-toolkit.
HttpResponse refused(Verdict verdict) {
  if (verdict == Verdict::unauthorized) {
    return {.status = 401, .body = "Unauthorized\n", .headers = kUnauthorizedHeaders};
  }
  return {.status = 429, .body = "Too Many Requests\n", .headers = kTooManyHeaders};
}

constexpr Pausing kPausing = {
    [](void* request) noexcept { MHD_suspend_connection(static_cast<MHD_Connection*>(request)); },
    [](void* request) noexcept { MHD_resume_connection(static_cast<MHD_Connection*>(request)); }};

HttpResponse too_many_streams() {
  return {.status = 503, .body = "Too many streams of events are open.\n", .headers = kTooManyHeaders};
}

/// Start of the log message for each answer that the library sends by itself; the status is its first
/// argument.
constexpr std::string_view kRefused = "Error processing request (HTTP response code is %u";

/// Start of the log message after an accept() that failed for lack of a descriptor or of memory.
constexpr std::string_view kAcceptFailed = "Hit process or system resource limit";

/// A request's context while it is paused, and while its answer is a stream; recognised by their addresses.
constexpr char kPaused = 0;
constexpr char kStreaming = 0;

/// The connection's entry in the book; null if there was no memory for it.
HttpConnection* entry_of(MHD_Connection* connection) noexcept {
  const MHD_ConnectionInfo* info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
  return info == nullptr ? nullptr : static_cast<HttpConnection*>(info->socket_context);
}

/// Peer::key of the client; empty if the book has no entry.
std::string peer_key(MHD_Connection* connection) {
  const HttpConnection* const entry = entry_of(connection);
  return entry == nullptr ? "" : entry->peer().key;
}

bool is_private(MHD_Connection* connection) noexcept {
  const HttpConnection* const entry = entry_of(connection);
  return entry != nullptr && entry->is_private();
}

/// False if the routes reject the method, whatever is requested.
bool is_method_known(std::string_view method) noexcept { return method == "GET" || method == "HEAD"; }

/// Calls the roll of the library's threads. Each gets a connection with an address that no client can have,
/// and answers it with a byte as soon as it accepts it. A thread that hangs does not.
///
/// A held thread stays in the library's callback, so that it is nowhere else in the library.
/// MHD_quiesce_daemon() needs this: up to 1.0, one of its threads and the caller may both remove the
/// listening socket from the thread's epoll set, and the library then ends the process (MHD_PANIC, "Failed to
/// remove listen FD from epoll set"; daemon.c:5531 of 0.9.75). Any thread.
class RollCall {
 public:
  /// The kernel gives every accepted connection a family.
  static constexpr sockaddr kAddress{.sa_family = AF_UNSPEC, .sa_data = {}};
  static bool is_asked_by(const sockaddr* peer) noexcept {
    return peer != nullptr && peer->sa_family == kAddress.sa_family;
  }

  /// Threads that answer stay until release().
  void hold() GPUMETER_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    is_held_ = true;
  }
  void release() noexcept GPUMETER_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    is_held_ = false;
    changed_.notify_all();
  }
  /// On a thread of the library. Each wait has a limit (base/mutex.hpp); the loop looks again.
  void answer(int descriptor) GPUMETER_EXCLUDES(mutex_) {
    static_cast<void>(send(descriptor, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT));
    const MutexLock lock(mutex_);
    while (is_held_) changed_.wait_for(mutex_, std::chrono::milliseconds(100));
  }

 private:
  Mutex mutex_;
  Condition changed_;
  bool is_held_ GPUMETER_GUARDED_BY(mutex_) = false;
};

/// The responses of the current pages, so that a scrape of a cached page costs only its sending. The cache
/// holds one response per requested Content-Type and encoding. The first response with a new page or new
/// configured headers replaces the old ones. Any thread.
class ResponseCache {
 public:
  /// As make_response().
  MhdResponsePtr response(HttpResponse message) GPUMETER_EXCLUDES(mutex_) {
    if (!message.is_current) return make_response(std::move(message));
    if (MhdResponsePtr found = find(message)) return found;
    MhdResponsePtr made = make_response(message);
    keep({message.content_type, std::move(message.page), std::move(message.access), made});
    return made;
  }

 private:
  struct Entry {
    std::string_view content_type;
    PagePtr page;
    std::shared_ptr<const WebGeneration> access;
    MhdResponsePtr response;
  };

  MhdResponsePtr find(const HttpResponse& message) const GPUMETER_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    for (const Entry& entry : entries_) {
      if (entry.page == message.page && entry.content_type == message.content_type &&
          entry.access == message.access) {
        return entry.response;
      }
    }
    return nullptr;
  }

  void keep(Entry entry) GPUMETER_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    std::erase_if(entries_, [&](const Entry& old) {
      const bool is_old = old.page != entry.page || old.access != entry.access;
      return is_old && old.page->format == entry.page->format && old.page->encoding == entry.page->encoding;
    });
    entries_.push_back(std::move(entry));
  }

  mutable Mutex mutex_;
  std::vector<Entry> entries_ GPUMETER_GUARDED_BY(mutex_);
};

}  // namespace

/// Shared by all listeners of a server: converts libmicrohttpd's requests for the routes, and their responses
/// back. The library calls the static functions on its own threads; `handler` is the Handler. No exception
/// escapes.
class HttpServer::Handler {
 public:
  /// `access` and `owners` may be null: all requests are admitted, each uid is its own.
  Handler(Routes& routes, const Clock& clock, WebAccess* access, const UserOwners* owners)
      : routes_(routes),
        access_(access),
        owners_(owners),
        is_tls_(access != nullptr && access->current()->tls != nullptr),
        connections_(clock, {}, [this](void* request) { release(request); }),
        renderings_(clock, [this](const HttpRequest& request) { return ask_routes(request); }) {}

  bool is_tls() const noexcept { return is_tls_; }
  HttpCounts counts() const {
    HttpCounts result;
    for (std::size_t i = 0; i < kCodes.size(); ++i) result.emplace_back(kCodes[i], counts_[i].load());
    return result;
  }
  HttpConnections& connections() noexcept { return connections_; }
  RollCall& roll_call() noexcept { return roll_call_; }
  Renderings& renderings() noexcept { return renderings_; }
  void look() {
    connections_.look();
    streams_.look(access_ != nullptr ? access_->current() : nullptr);
  }
  /// The library cannot stop while a request is paused: all are continued.
  void release_all() {
    if (access_ != nullptr) access_->close();
    renderings_.close();
    streams_.close();
  }

  /// `kIsPrivate`: of private listeners, whose socket's file decides who may connect: without TLS and users.
  template <bool kIsPrivate>
  static void on_connection(void* handler, MHD_Connection* connection, void** context,
                            MHD_ConnectionNotificationCode code) noexcept {
    static_cast<Handler*>(handler)->change(connection, context, code, kIsPrivate);
  }
  /// Called in the handshake of a session that on_connection() has not prepared: the handshake fails.
  // NOLINTNEXTLINE(readability-function-size): the library's parameters
  static int on_missing_certificate(gnutls_session_t, const gnutls_datum_t*, int,
                                    const gnutls_pk_algorithm_t*, int, gnutls_pcert_st**, unsigned*,
                                    gnutls_privkey_t*) noexcept {
    return -1;
  }
  /// Called before the library reads arguments and headers; the returned value is the initial `*request`.
  static void* on_request_line(void*, const char* uri, MHD_Connection* connection) noexcept {
    return const_cast<Refusal*>(accept_line(connection, uri));
  }
  /// The library calls it after the headers and again after the body, which is always empty. A request that
  /// announces a body is answered at the first call, before a byte of the body is read. Other requests are
  /// answered at the second call, because the library closes a connection after an early answer. `*request`
  /// records the state of the request: null or a Refusal from on_request_line(), the connection after the
  /// first call, the handler once it is answered.
  // NOLINTNEXTLINE(readability-function-size): the library's parameters
  static MHD_Result on_request(void* handler, MHD_Connection* connection, const char* path,
                               const char* method, const char* version, const char*, std::size_t* body_size,
                               void** request) noexcept {
    *body_size = 0;
    const bool is_resumed = *request == &kPaused;
    const bool seen = is_resumed || *request == connection;
    const auto* refusal = seen ? nullptr : static_cast<const Refusal*>(*request);
    *request = connection;
    if (!seen && refusal == nullptr) {
      const HeaderCheck headers = check_headers(connection, version);
      refusal = headers.refusal;
      if (refusal == nullptr && !headers.announce_body && is_method_known(method)) return MHD_YES;
    }
    HttpConnection* const entry = entry_of(connection);
    if (entry != nullptr) entry->asked();
    *request = handler;
    try {
      const auto outcome =
          static_cast<Handler*>(handler)->answer(connection, {path, method, refusal, is_resumed});
      if (outcome == Outcome::paused) {
        *request = const_cast<char*>(&kPaused);
        if (entry != nullptr) entry->paused(connection);
      }
      if (outcome == Outcome::streams) *request = const_cast<char*>(&kStreaming);
      return outcome == Outcome::failed ? MHD_NO : MHD_YES;
    } catch (...) {
      return MHD_NO;
    }
  }
  static void on_completed(void* handler, MHD_Connection* connection, void** request,
                           MHD_RequestTerminationCode) noexcept {
    if (*request == handler) {
      --static_cast<Handler*>(handler)->in_flight_;
      if (HttpConnection* entry = entry_of(connection); entry != nullptr) entry->answered();
    } else if (*request == &kStreaming) {
      if (HttpConnection* entry = entry_of(connection); entry != nullptr) entry->answered();
    } else if (*request == &kPaused) {
      static_cast<Handler*>(handler)->renderings_.forget(connection);
      if (WebAccess* const access = static_cast<Handler*>(handler)->access_) access->forget(connection);
    }
    *request = nullptr;
  }
  /// The library's log. Two kinds of messages are used: its own refusals are counted, and an accept() that
  /// failed for lack of resources ends a connection.
  static void on_message(void* handler, const char* format, std::va_list arguments) noexcept {
    if (std::string_view(format).starts_with(kRefused)) {
      static_cast<Handler*>(handler)->count(va_arg(arguments, unsigned));
    } else if (std::string_view(format).starts_with(kAcceptFailed)) {
      static_cast<Handler*>(handler)->connections().accept_failed();
    }
  }

 private:
  /// Every status code that the routes and the library use.
  static constexpr std::array kCodes = {200U, 304U, 400U, 401U, 404U, 405U, 413U,
                                        414U, 429U, 431U, 500U, 503U, 505U};

  /// What is known of a request when its answer starts.
  struct RequestLine {
    const char* path;
    const char* method;
    const Refusal* refusal;  ///< null: ask the routes
    bool is_resumed;         ///< the request was paused before
  };
  enum class Outcome : std::uint8_t {
    queued,   ///< the answer is with the library
    streams,  ///< the same; it is no request under way, because it has no end
    paused,   ///< the request waits for its user's password to be checked, or for its page to be rendered;
              ///< answer() is due again when it continues
    failed    ///< the connection ends without an answer
  };

  void change(MHD_Connection* connection, void** context, MHD_ConnectionNotificationCode code,
              bool is_private) noexcept {
    // The library creates its threads; each one is named at its first connection.
    thread_local const int named = pthread_setname_np(pthread_self(), "http");
    static_cast<void>(named);
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
      connections_.closed(static_cast<HttpConnection*>(*context));
      return;
    }
    try {
      const MHD_ConnectionInfo* info =
          MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
      const sockaddr* peer = info == nullptr ? nullptr : info->client_addr;
      const int descriptor =
          MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
      if (RollCall::is_asked_by(peer)) return roll_call_.answer(descriptor);
      HttpConnection* const entry = connections_.opened(descriptor, Peer::of(peer, descriptor, owners_));
      *context = entry;
      if (is_private) return entry->set_private();
      if (is_tls_) open_tls(connection, *entry);
    } catch (...) {  // out of memory: plain HTTP is served without a deadline; a TLS handshake fails
    }
  }
  /// Before the handshake. The connection holds the context that is in force until it is closed. If the
  /// session is not prepared, its handshake fails.
  void open_tls(MHD_Connection* connection, HttpConnection& entry) const {
    const MHD_ConnectionInfo* info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    std::shared_ptr<const TlsContext> context = access_->current()->tls;
    if (info == nullptr || context == nullptr) return;
    if (context->apply(static_cast<gnutls_session_t>(info->tls_session))) entry.hold(std::move(context));
  }
  Outcome answer(MHD_Connection* connection, const RequestLine& line) {
    const unsigned in_flight = ++in_flight_;
    Intake intake{.request = {.method = line.method, .path = line.path}};
    intake.request.is_private = is_private(connection);
    take_request(connection, intake);
    std::optional<HttpResponse> rendered;
    if (line.is_resumed) rendered = renderings_.answer_to(connection);
    Admission admission = admit(connection, line, intake.authorization);
    if (admission.verdict == Verdict::waits) {
      --in_flight_;  // it is not under way; a later call begins again
      return Outcome::paused;
    }
    HttpRequest& request = intake.request;
    HttpResponse message;
    if (admission.verdict != Verdict::admitted) {
      message = refused(admission.verdict);
      message.close = request.has_body || request.is_chunked || request.has_bad_length;
    } else if (line.refusal != nullptr) {
      message = {.status = line.refusal->status, .body = line.refusal->text, .close = true};
    } else {
      request.in_flight = make_room(connection, in_flight);
      request.is_memory_short = connections_.may_hold_too_much();
      if (rendered && routes_.refuses(request)) rendered = routes_.busy();
      if (!rendered) rendered = answer_or_pause(connection, request);
      if (!rendered) {
        --in_flight_;
        return Outcome::paused;
      }
      message = *std::move(rendered);
    }
    message.counted = message.counted && !request.is_private;
    message.access = std::move(admission.generation);
    if (message.stream != nullptr && !streams_.add(message.stream, peer_key(connection), message.access))
      message = too_many_streams();
    const bool is_stream = message.stream != nullptr;
    if (!queue(connection, std::move(message), intake.timeout)) return Outcome::failed;
    if (is_stream) --in_flight_;
    return is_stream ? Outcome::streams : Outcome::queued;
  }
  // nullopt: the request is paused until its page is rendered.
  std::optional<HttpResponse> answer_or_pause(MHD_Connection* connection, const HttpRequest& request) {
    const Rendering rendering = routes_.rendering_of(request);
    if (rendering == Rendering::none) return ask_routes(request);
    return renderings_.answer(request, {connection, peer_key(connection), rendering}, kPausing);
  }
  /// Ends answers that take long if `in_flight` requests, or the pages that they hold, are too many. Returns
  /// how many are under way then. The book's mutex is locked only if there may be too many answers or bytes,
  /// so a scrape normally does not wait for it.
  unsigned make_room(MHD_Connection* connection, unsigned in_flight) {
    const unsigned limit = routes_.max_requests() == 0 ? UINT_MAX - 1 : routes_.max_requests();
    if (in_flight <= limit && !connections_.may_hold_too_much()) return in_flight;
    return static_cast<unsigned>(connections_.make_room_for_answers(limit, entry_of(connection)));
  }
  HttpResponse ask_routes(const HttpRequest& request) noexcept {
    try {
      return routes_.answer(request);
    } catch (const std::exception&) {
      return {.status = 500, .body = "Internal error.\n"};
    }
  }
  // A refusal reveals nothing, so it needs no user.
  Admission admit(MHD_Connection* connection, const RequestLine& line,
                  std::optional<std::string_view> authorization) {
    if (access_ == nullptr || is_private(connection)) return {};
    if (line.refusal != nullptr) return access_->admit_unseen();
    return access_->admit({connection, authorization, line.is_resumed, peer_key(connection)}, kPausing);
  }
  /// The client gives up `timeout` after its request.
  bool queue(MHD_Connection* connection, HttpResponse message, Nanoseconds timeout) {
    const unsigned status = message.status;
    if (message.counted) count(status);
    if (HttpConnection* const entry = entry_of(connection); entry != nullptr) {
      if (message.page != nullptr) {
        entry->sends(message.page.get(), message.page->bytes.size(), timeout);
      } else if (message.bytes != nullptr) {
        entry->sends(message.bytes.get(), message.bytes->size(), timeout);
      } else if (message.stream == nullptr) {
        entry->sends(entry, message.body.size(), timeout);  // its own
      }
    }
    if (message.stream != nullptr) message.stream->attach(connection, entry_of(connection), kPausing);
    const MhdResponsePtr response = responses_.response(std::move(message));
    return response != nullptr && MHD_queue_response(connection, status, response.get()) == MHD_YES;
  }
  /// A paused request whose connection ends need not wait.
  void release(void* request) noexcept {
    renderings_.release(request);
    streams_.release(request);
    if (access_ != nullptr) access_->release(request);
  }
  /// Counts an answer, whether from the routes or from the library.
  void count(unsigned status) noexcept {
    for (std::size_t i = 0; i < kCodes.size(); ++i) {
      if (kCodes[i] == status) ++counts_[i];
    }
  }

  Routes& routes_;
  WebAccess* const access_;
  const UserOwners* const owners_;
  const bool is_tls_;
  HttpConnections connections_;
  RollCall roll_call_;
  ResponseCache responses_;
  EventStreams streams_;
  std::atomic<unsigned> in_flight_{0};
  std::array<std::atomic<std::uint64_t>, kCodes.size()> counts_{};
  Renderings renderings_;
};

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
  const auto on_connection =
      listener.is_private() ? Handler::on_connection<true> : Handler::on_connection<false>;
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
    : threads_(threads), handler_(std::make_unique<Handler>(routes, clock_, access, owners)) {}

HttpServer::~HttpServer() { handler_->release_all(); }

void HttpServer::look() { handler_->look(); }

// A socket from systemd outlives this process. The next process serves its queued connections; this one must
// answer the connections it has accepted.
void HttpServer::stop() {
  handler_->release_all();
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
