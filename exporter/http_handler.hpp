#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "exporter/http_server.hpp"
#include "exporter/mhd_response.hpp"
#include "exporter/routes.hpp"

struct MHD_Connection;

namespace gpumeter {

/// What all listeners of a server share: from libmicrohttpd's view of a request to the routes and back.
/// Any HTTP thread.
class HttpServer::Handler {
 public:
  explicit Handler(Routes& routes) : routes_(routes) {}

  /// Whether the routes may refuse this request for its method or because it has a body.
  static bool must_answer_unread(MHD_Connection* connection, std::string_view method) noexcept;
  /// Queues the answer; false ends the connection without one.
  bool answer(MHD_Connection* connection, const char* path, const char* method);
  /// The answer was sent, or the connection broke.
  void completed() noexcept { --in_flight_; }

  HttpCounts counts() const;

 private:
  /// Every code the routes answer with.
  static constexpr std::array kCodes = {200U, 400U, 404U, 405U, 413U, 500U, 503U};

  HttpResponse ask_routes(const HttpRequest& request) noexcept;
  void count(unsigned status) noexcept;

  Routes& routes_;
  ResponseCache responses_;
  std::atomic<unsigned> in_flight_{0};
  std::array<std::atomic<std::uint64_t>, kCodes.size()> counts_{};
};

}  // namespace gpumeter
