#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/clock.hpp"
#include "exporter/http/connections.hpp"
#include "exporter/http/response.hpp"
#include "exporter/http/routes.hpp"
#include "exporter/http/server.hpp"

struct MHD_Connection;

namespace gpumeter {

/// The Content-Length that each request is given before those of its client; known by its address.
inline constexpr char kNoBody[] = "0";

/// Why a request is refused whose arguments were not parsed.
struct Refusal {
  unsigned status;
  const char* text;
};

/// What all listeners of a server share: from libmicrohttpd's view of a request to the routes and back.
/// Any HTTP thread.
class HttpServer::Handler {
 public:
  static constexpr Refusal kTooLong{414, "The request line is too long.\n"};
  static constexpr Refusal kTooManyArguments{400, "More than 64 arguments are not allowed.\n"};

  Handler(Routes& routes, const Clock& clock) : routes_(routes), connections_(clock) {}

  /// Whether the library may not have the memory to parse this; null if it has.
  static const Refusal* refusal_of(std::string_view uri) noexcept;
  /// Whether the routes may refuse this request for its method or because it has a body.
  static bool must_answer_unread(MHD_Connection* connection, std::string_view method) noexcept;
  /// Queues the answer, which is the refusal if there is one; false ends the connection without one.
  bool answer(MHD_Connection* connection, const char* path, const char* method, const Refusal* refusal);
  /// The answer was sent, or the connection broke.
  void completed() noexcept { --in_flight_; }

  /// An answer, ours or the library's own.
  void count(unsigned status) noexcept;
  HttpCounts counts() const;
  HttpConnections& connections() noexcept { return connections_; }

 private:
  /// Every code that the routes and the library answer with.
  static constexpr std::array kCodes = {200U, 400U, 404U, 405U, 413U, 414U, 431U, 500U, 503U, 505U};

  /// Counts a request as under way, and says how many are.
  unsigned begin();
  HttpResponse ask_routes(const HttpRequest& request) noexcept;

  Routes& routes_;
  HttpConnections connections_;
  ResponseCache responses_;
  std::atomic<unsigned> in_flight_{0};
  std::array<std::atomic<std::uint64_t>, kCodes.size()> counts_{};
};

}  // namespace gpumeter
