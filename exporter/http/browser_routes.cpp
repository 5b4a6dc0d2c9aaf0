#include "exporter/http/browser_routes.hpp"

#include <algorithm>
#include <utility>

#include "exporter/http/negotiation/negotiate.hpp"
#include "exporter/json/history.hpp"
#include "exporter/web/status_page.hpp"

namespace gpumeter {
namespace {

constexpr HttpHeader kNoSniff{"X-Content-Type-Options", "nosniff"};
constexpr HttpHeader kRevalidate{"Cache-Control", "no-cache"};
constexpr HttpHeader kNoStore{"Cache-Control", "no-store"};
constexpr HttpHeader kVary{"Vary", "Accept-Encoding"};
/// The page loads its own style sheet, script and data only. It has no inline script or style and may not be
/// framed.
constexpr HttpHeader kContentSecurity{
    "Content-Security-Policy",
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"};
constexpr HttpHeader kNoReferrer{"Referrer-Policy", "no-referrer"};

constexpr HttpHeader kPlainHeaders[] = {kNoSniff};
constexpr HttpHeader kDataHeaders[] = {kNoSniff, kNoStore, kVary};
constexpr HttpHeader kAssetHeaders[] = {kNoSniff, kRevalidate, kVary};
constexpr HttpHeader kPageHeaders[] = {kNoSniff, kRevalidate, kVary, kContentSecurity, kNoReferrer};

/// The text in the encoding that the request accepts.
HttpResponse encoded(const HttpRequest& request, const EncodedText& text, std::string_view content_type,
                     std::span<const HttpHeader> headers) {
  Encoding encoding = negotiate_encoding(request.accept_encoding);
  if (!text.has(encoding)) encoding = Encoding::identity;
  return {.content_type = content_type, .bytes = text.in(encoding), .encoding = encoding, .headers = headers};
}

/// As encoded(), or status 304 if the browser has the text already.
HttpResponse revalidated(const HttpRequest& request, const Asset& asset, std::string_view content_type,
                         std::span<const HttpHeader> headers) {
  HttpResponse response = matches_etag(request.if_none_match, asset.etag)
                              ? HttpResponse{.status = 304, .content_type = content_type, .headers = headers}
                              : encoded(request, asset.text, content_type, headers);
  response.etag = asset.etag;
  return response;
}

bool has_sparklines(const HttpRequest& request) {
  return std::ranges::any_of(request.query, [](const auto& argument) {
    return argument.first == "sparklines" && argument.second == "1";
  });
}

}  // namespace

std::optional<HttpResponse> BrowserRoutes::answer(const HttpRequest& request) const {
  if (request.path == "/") return page(request);
  if (request.path == "/gpumeter.css") {
    return revalidated(request, style_, "text/css; charset=utf-8", kAssetHeaders);
  }
  if (request.path == "/gpumeter.js") {
    return revalidated(request, script_, "text/javascript; charset=utf-8", kAssetHeaders);
  }
  if (request.path == "/runbooks") {
    return revalidated(request, runbooks_, "text/html; charset=utf-8", kPageHeaders);
  }
  if (request.path == "/api/v1/live" && sources_.live != nullptr) return live(request);
  if (request.path == kHistory && sources_.history != nullptr) return history(request);
  return std::nullopt;
}

bool BrowserRoutes::is_slow(const HttpRequest& request) const {
  if (request.path == "/api/v1/live") {
    return sources_.live != nullptr && !sources_.live->is_ready(has_sparklines(request));
  }
  return request.path == "/";
}

HttpResponse BrowserRoutes::page(const HttpRequest& request) const {
  const auto unread = sources_.unread ? sources_.unread() : std::vector<UnreadDevice>();
  const Asset page(status_page(sources_.devices(), unread, sources_.telemetry_path, sources_.build));
  return revalidated(request, page, "text/html; charset=utf-8", kPageHeaders);
}

HttpResponse BrowserRoutes::history(const HttpRequest& request) const {
  Result<std::string> body = history_json(*sources_.history, request.query);
  if (!body) return {.status = 400, .body = body.error().message() + "\n", .headers = kPlainHeaders};
  return encoded(request, EncodedText::of(*std::move(body)), "application/json", kDataHeaders);
}

HttpResponse BrowserRoutes::live(const HttpRequest& request) const {
  return encoded(request, has_sparklines(request) ? sources_.live->with_sparklines() : sources_.live->live(),
                 "application/json", kDataHeaders);
}

}  // namespace gpumeter
