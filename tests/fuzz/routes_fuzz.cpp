// One request through the routes of a small daemon. The lines of the input are the path with its query,
// Accept, Accept-Encoding, If-None-Match and the method; missing lines are empty.
#include <algorithm>
#include <string>
#include <string_view>

#include "base/text.hpp"
#include "exporter/json/api.hpp"
#include "programs/top/snapshot.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/fuzz/small_daemon.hpp"

namespace gpumeter {
namespace {

HttpRequest request_of(std::string_view text) {
  std::string_view path = take_until(text, '\n');
  HttpRequest request{.method = "GET", .path = take_until(path, '?')};
  for (std::size_t count = 0; !path.empty() && count < 64; ++count) {
    std::string_view argument = take_until(path, '&');
    const std::string_view name = take_until(argument, '=');
    request.query.emplace_back(name, argument);
  }
  request.accept = take_until(text, '\n');
  request.accept_encoding = take_until(text, '\n');
  request.if_none_match = take_until(text, '\n');
  if (!text.empty()) request.method = take_until(text, '\n');
  return request;
}

std::string_view content_of(const HttpResponse& response) {
  if (response.page != nullptr) return response.page->bytes;
  return response.bytes != nullptr ? std::string_view(*response.bytes) : std::string_view(response.body);
}

bool is_gzip(const HttpResponse& response) {
  return (response.page != nullptr ? response.page->encoding : response.encoding) == Encoding::gzip;
}

void check(const HttpRequest& request, const HttpResponse& response) {
  constexpr unsigned kCodes[] = {200, 304, 400, 404, 405};
  fuzz::expect(std::ranges::find(kCodes, response.status) != std::end(kCodes));
  fuzz::expect(response.status != 304 || !request.if_none_match.empty());
  fuzz::expect(!is_gzip(response) || content_of(response).starts_with("\x1F\x8B"));
  fuzz::expect(response.status == 304 || !content_of(response).empty() || response.page != nullptr);
  if (response.status != 200) return;
  const auto health_at = Nanoseconds{1};
  if (request.path == "/api/v1/series")
    fuzz::expect(bool(top::parse_series(response.body, top::Charset::utf8)));
  if (request.path == "/api/v1/health") fuzz::expect(bool(parse_health_json(response.body, health_at)));
}

}  // namespace
}  // namespace gpumeter

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gpumeter;
  static fuzz::SmallDaemon daemon;
  const HttpRequest request = request_of(fuzz::text_of(data, size));
  check(request, daemon.routes().answer(request));
  return 0;
}
