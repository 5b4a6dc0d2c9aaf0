#pragma once

#include <gnutls/abstract.h>
#include <microhttpd.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "exporter/access/access.hpp"
#include "exporter/http/connections.hpp"
#include "exporter/http/message.hpp"
#include "exporter/http/renderings.hpp"
#include "exporter/http/routes.hpp"
#include "exporter/http/server.hpp"

namespace gpumeter {

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
  void hold() GPUMETER_EXCLUDES(mutex_);
  void release() noexcept GPUMETER_EXCLUDES(mutex_);
  /// On a thread of the library.
  void answer(int descriptor) GPUMETER_EXCLUDES(mutex_);

 private:
  Mutex mutex_;
  Condition changed_;
  bool is_held_ GPUMETER_GUARDED_BY(mutex_) = false;
};

/// libmicrohttpd's form of a response. It may be queued on many connections at once and may outlive this
/// pointer there: the library counts its own references.
using MhdResponsePtr = std::shared_ptr<MHD_Response>;

/// The responses of the current pages, so that a scrape of a cached page costs only its sending. The cache
/// holds one response per requested Content-Type and encoding. The first response with a new page or new
/// configured headers replaces the old ones. Any thread.
class ResponseCache {
 public:
  /// Null if memory is short. The bytes of a page are sent in place, without a copy.
  MhdResponsePtr response(HttpResponse message) GPUMETER_EXCLUDES(mutex_);

 private:
  struct Entry {
    std::string_view content_type;
    PagePtr page;
    std::shared_ptr<const WebGeneration> access;
    MhdResponsePtr response;
  };

  MhdResponsePtr find(const HttpResponse& message) const GPUMETER_EXCLUDES(mutex_);
  void keep(Entry entry) GPUMETER_EXCLUDES(mutex_);

  mutable Mutex mutex_;
  std::vector<Entry> entries_ GPUMETER_GUARDED_BY(mutex_);
};

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
  HttpCounts counts() const;
  HttpConnections& connections() noexcept { return connections_; }
  RollCall& roll_call() noexcept { return roll_call_; }
  Renderings& renderings() noexcept { return renderings_; }

  static void on_connection(void* handler, MHD_Connection* connection, void** context,
                            MHD_ConnectionNotificationCode code) noexcept;
  /// The same for private listeners, whose socket's file decides who may connect: without TLS and users.
  static void on_private_connection(void* handler, MHD_Connection* connection, void** context,
                                    MHD_ConnectionNotificationCode code) noexcept;
  /// Called in the handshake of a session that on_connection() has not prepared: the handshake fails.
  // NOLINTNEXTLINE(readability-function-size): the library's parameters
  static int on_missing_certificate(gnutls_session_t session, const gnutls_datum_t* issuers, int issuer_count,
                                    const gnutls_pk_algorithm_t* algorithms, int algorithm_count,
                                    gnutls_pcert_st** certificates, unsigned* certificate_count,
                                    gnutls_privkey_t* key) noexcept;
  /// Called before the library reads arguments and headers; the returned value is the initial `*request`.
  static void* on_request_line(void* handler, const char* uri, MHD_Connection* connection) noexcept;
  /// The library calls it after the headers and again after the body, which is always empty. A request that
  /// announces a body is answered at the first call, before a byte of the body is read. Other requests are
  /// answered at the second call, because the library closes a connection after an early answer. `*request`
  /// records the state of the request: null or a Refusal from on_request_line(), the connection after the
  /// first call, the handler once it is answered.
  // NOLINTNEXTLINE(readability-function-size): the library's parameters
  static MHD_Result on_request(void* handler, MHD_Connection* connection, const char* path,
                               const char* method, const char* version, const char* body,
                               std::size_t* body_size, void** request) noexcept;
  static void on_completed(void* handler, MHD_Connection* connection, void** request,
                           MHD_RequestTerminationCode code) noexcept;
  /// The library's log. Two kinds of messages are used: its own refusals are counted, and an accept() that
  /// failed for lack of resources ends a connection.
  static void on_message(void* handler, const char* format, std::va_list arguments) noexcept;

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
    queued,  ///< the answer is with the library
    paused,  ///< the request waits for its user's password to be checked, or for its page to be rendered;
             ///< answer() is due again when it continues
    failed   ///< the connection ends without an answer
  };

  void change(MHD_Connection* connection, void** context, MHD_ConnectionNotificationCode code,
              bool is_private) noexcept;
  /// Before the handshake. The connection holds the context that is in force until it is closed. If the
  /// session is not prepared, its handshake fails.
  void open_tls(MHD_Connection* connection, HttpConnection& entry) const;
  Outcome answer(MHD_Connection* connection, const RequestLine& line);
  std::optional<HttpResponse> answer_or_pause(MHD_Connection* connection, const HttpRequest& request);
  /// Ends answers that take long if `in_flight` requests, or the pages that they hold, are too many. Returns
  /// how many are under way then.
  unsigned make_room(MHD_Connection* connection, unsigned in_flight);
  HttpResponse ask_routes(const HttpRequest& request) noexcept;
  Admission admit(MHD_Connection* connection, const RequestLine& line,
                  std::optional<std::string_view> authorization);
  /// The client gives up `timeout` after its request.
  bool queue(MHD_Connection* connection, HttpResponse message, Nanoseconds timeout);
  /// A paused request whose connection ends need not wait.
  void release(void* request) noexcept;
  /// Counts an answer, whether from the routes or from the library.
  void count(unsigned status) noexcept;

  Routes& routes_;
  WebAccess* const access_;
  const UserOwners* const owners_;
  const bool is_tls_;
  HttpConnections connections_;
  RollCall roll_call_;
  ResponseCache responses_;
  std::atomic<unsigned> in_flight_{0};
  std::array<std::atomic<std::uint64_t>, kCodes.size()> counts_{};
  Renderings renderings_;
};

}  // namespace gpumeter
