#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.hpp"
#include "exporter/access/access.hpp"
#include "exporter/http/connections.hpp"
#include "exporter/http/renderings.hpp"
#include "exporter/http/response.hpp"
#include "exporter/http/routes.hpp"
#include "exporter/http/server.hpp"
#include "exporter/http/standstill.hpp"
#include "exporter/http/strict.hpp"
#include "exporter/http/tls_sessions.hpp"

struct MHD_Connection;

namespace gpumeter {

/// Shared by all listeners of a server: converts libmicrohttpd's requests for the routes, and their responses
/// back. Any HTTP thread.
class HttpServer::Handler {
 public:
  static constexpr Refusal kTooLong{414, "The request line is too long.\n"};
  static constexpr Refusal kTooManyArguments{400, "More than 64 arguments are not allowed.\n"};

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

  /// `access` may be null: all requests are admitted. So may `owners`.
  Handler(Routes& routes, const Clock& clock, WebAccess* access, const UserOwners* owners)
      : routes_(routes),
        owners_(owners),
        tls_(tls_source_of(access)),
        connections_(clock, {}, [this](void* request) { release(request); }),
        access_(access),
        renderings_(clock, [this](const HttpRequest& request) { return ask_routes(request); }) {}

  /// Returns the refusal if `uri` is malformed or if the library may lack the memory to parse it, otherwise
  /// null.
  static const Refusal* refusal_of(const char* uri) noexcept;
  /// The connection's entry in the book; null if there was no memory for it.
  static HttpConnection* entry_of(MHD_Connection* connection) noexcept;
  /// Peer::key of the client; empty if the book has no entry.
  static std::string peer_key(MHD_Connection* connection);
  /// False if the routes reject the method, whatever is requested.
  static bool is_method_known(std::string_view method) noexcept {
    return method == "GET" || method == "HEAD";
  }
  Outcome answer(MHD_Connection* connection, const RequestLine& line);
  /// The answer was sent, or the connection broke.
  void completed() noexcept { --in_flight_; }
  /// A paused request whose connection ends need not wait.
  void release(void* request) noexcept;
  /// A paused request ended without its answer.
  void forget(MHD_Connection* connection) noexcept;

  /// Counts an answer, whether from the routes or from the library.
  void count(unsigned status) noexcept;
  HttpCounts counts() const;
  const UserOwners* owners() const noexcept { return owners_; }
  HttpConnections& connections() noexcept { return connections_; }
  Standstill& standstill() noexcept { return standstill_; }
  TlsSessions& tls() noexcept { return tls_; }
  Renderings& renderings() noexcept { return renderings_; }

 private:
  /// Every status code that the routes and the library use.
  static constexpr std::array kCodes = {200U, 304U, 400U, 401U, 404U, 405U, 413U,
                                        414U, 429U, 431U, 500U, 503U, 505U};

  /// Ends answers that take long if `in_flight` requests, or the pages that they hold, are too many. Returns
  /// how many are under way then.
  unsigned make_room(MHD_Connection* connection, unsigned in_flight);
  std::optional<HttpResponse> answer_or_pause(MHD_Connection* connection, HttpRequest& request,
                                              unsigned in_flight);
  HttpResponse ask_routes(const HttpRequest& request) noexcept;
  Admission admit(MHD_Connection* connection, const RequestLine& line,
                  std::optional<std::string_view> authorization);
  /// The client gives up `timeout` after its request.
  bool queue(MHD_Connection* connection, HttpResponse message, Nanoseconds timeout);

  Routes& routes_;
  const UserOwners* const owners_;
  TlsSessions tls_;
  HttpConnections connections_;
  Standstill standstill_;
  WebAccess* const access_;
  ResponseCache responses_;
  std::atomic<unsigned> in_flight_{0};
  std::array<std::atomic<std::uint64_t>, kCodes.size()> counts_{};
  Renderings renderings_;
};

}  // namespace gpumeter
