#include "exporter/http/routes.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "exporter/dcgm/rows.hpp"
#include "exporter/dcgm/view.hpp"
#include "exporter/json/api.hpp"
#include "exporter/web/pages.hpp"

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

constexpr std::string_view kDevices = "/api/v1/devices";
constexpr std::string_view kLive = "/api/v1/live";
constexpr std::string_view kHistory = "/api/v1/history";
constexpr std::string_view kWorkloads = "/api/v1/workloads";
constexpr std::string_view kOneWorkload = "/api/v1/workloads/";

/// Caches between gpumeter and a scraper must distinguish the formats.
constexpr HttpHeader kMetricsHeaders[] = {{"Vary", "Accept, Accept-Encoding"}};
constexpr HttpHeader kMethodHeaders[] = {kNoSniff, {"Allow", "GET, HEAD"}};
constexpr HttpHeader kJsonHeaders[] = {kNoSniff, kNoStore};

HttpResponse plain(unsigned status, std::string text) {
  return {.status = status, .body = std::move(text), .headers = kPlainHeaders};
}

HttpResponse json(std::string text) {
  return {.content_type = "application/json", .body = std::move(text), .headers = kJsonHeaders};
}

/// A request with a body is rejected before the body is read, and its connection closes. A proxy then cannot
/// disagree about where the next request starts.
HttpResponse closing(unsigned status, std::string text) {
  HttpResponse response = plain(status, std::move(text));
  response.close = true;
  return response;
}

Filter filter_of(const HttpRequest& request) {
  Filter filter;
  for (const auto& [name, value] : request.query) {
    if (name == "collect[]") filter.collect.emplace_back(value);
    if (name == "exclude[]") filter.exclude.emplace_back(value);
  }
  return filter;
}

constexpr std::string_view kOwnNames = "gpumeter";

/// Whose names the page has: the last `names` of the request.
std::string_view names_of(const HttpRequest& request) noexcept {
  std::string_view names = kOwnNames;
  for (const auto& [name, value] : request.query) {
    if (name == "names") names = value;
  }
  return names;
}

std::string complaint_about(std::string_view names) {
  if (names == kOwnNames || dcgm::version_of(names)) return {};
  std::string choices(kOwnNames);
  for (const dcgm::Choice& each : dcgm::kChoices) choices.append(", ").append(each.name);
  return "names: unknown value. Use one of " + choices + ".\n";
}

/// The series of the page by the last `detail` of the request; nullopt: another word than these.
std::optional<PageDetail> detail_of(const HttpRequest& request) noexcept {
  PageDetail detail = PageDetail::configured;
  for (const auto& [name, value] : request.query) {
    if (name != "detail") continue;
    if (value != "standard" && value != "full") return std::nullopt;
    detail = value == "full" ? PageDetail::full : PageDetail::standard;
  }
  return detail;
}

/// The message with which node_exporter rejects an invalid filter; empty if the filter is valid. Unknown
/// names in exclude[] are no error in node_exporter either.
std::string complaint_about(const Filter& filter, const std::vector<CollectorState>& collectors) {
  if (!filter.collect.empty() && !filter.exclude.empty()) {
    return "Combined collect and exclude queries are not allowed.";
  }
  for (const std::string& name : filter.collect) {
    const auto found = std::ranges::find(collectors, name, &CollectorState::name);
    const bool missing = found == collectors.end();
    if (!missing && found->enabled) continue;
    return "Couldn't create filtered metrics handler: " + std::string(missing ? "missing" : "disabled") +
           " collector: " + name;
  }
  return {};
}

}  // namespace

std::optional<HttpResponse> Routes::browser(const HttpRequest& request) const {
  if (request.path == "/") return live_page(request);
  if (request.path == "/gpumeter.css") {
    return revalidated(request, style_, "text/css; charset=utf-8", kAssetHeaders);
  }
  if (request.path == "/gpumeter.js") {
    return revalidated(request, script_, "text/javascript; charset=utf-8", kAssetHeaders);
  }
  if (request.path == "/runbooks") {
    return revalidated(request, runbooks_, "text/html; charset=utf-8", kPageHeaders);
  }
  if (request.path == kLive && has(&Machine::live)) return live(request);
  if (request.path == kHistory && has(&Machine::history)) return history(request);
  return std::nullopt;
}

HttpResponse Routes::live_page(const HttpRequest& request) const {
  const auto unread = context_.unread ? context_.unread() : std::vector<UnreadDevice>();
  const Asset page(status_page(context_.devices(), unread, context_.web.telemetry_path, context_.build));
  return revalidated(request, page, "text/html; charset=utf-8", kPageHeaders);
}

HttpResponse Routes::history(const HttpRequest& request) const {
  Result<std::string> body = history_json(*context_.machine->history, request.query);
  if (!body) return {.status = 400, .body = body.error().message() + "\n", .headers = kPlainHeaders};
  return encoded(request, EncodedText::of(*std::move(body)), "application/json", kDataHeaders);
}

HttpResponse Routes::live(const HttpRequest& request) const {
  LiveAnswers& live = *context_.machine->live;
  return encoded(request, has_sparklines(request) ? live.with_sparklines() : live.live(), "application/json",
                 kDataHeaders);
}

HttpResponse Routes::answer(const HttpRequest& request) {
  if (request.method != "GET" && request.method != "HEAD") {
    return {.status = 405, .body = "Only GET and HEAD are allowed.\n", .headers = kMethodHeaders};
  }
  if (request.is_chunked) return closing(400, "A request body is not allowed.\n");
  if (request.has_bad_length) return closing(400, "Content-Length is not a number.\n");
  if (request.has_body) return closing(413, "A request body is not allowed.\n");
  if (refuses(request)) return busy();
  if (request.path == context_.web.telemetry_path) return metrics(request);
  if (request.path == "/-/healthy") return {.body = "OK\n", .counted = false};
  if (request.path == "/-/ready") return ready();
  if (request.path == kDevices) return devices();
  if (request.path == "/api/v1/series") return series(request);
  if (request.path == "/api/v1/health" && context_.machine != nullptr) return health();
  const bool is_of_workloads = request.path == kWorkloads || request.path.starts_with(kOneWorkload);
  if (is_of_workloads && context_.workloads) return workloads(request);
  if (const auto* const body = private_route(request)) return json((*body)());
  if (std::optional<HttpResponse> response = browser(request)) return *std::move(response);
  return plain(404, "Not found.\n");
}

const std::function<std::string()>* Routes::private_route(const HttpRequest& request) const {
  if (!request.is_private) return nullptr;
  const auto found = context_.private_json.find(request.path);
  return found == context_.private_json.end() ? nullptr : &found->second;
}

Rendering Routes::rendering_of(const HttpRequest& request) {
  const bool is_asked = request.method == "GET" || request.method == "HEAD";
  if (!is_asked || request.is_chunked || request.has_bad_length || request.has_body) return Rendering::none;
  if (refuses(request)) return Rendering::none;
  if (request.path == context_.web.telemetry_path) {
    const auto chooses = [](const auto& argument) {
      const std::string_view name = argument.first;
      return name == "names" || name == "detail" || name == "collect[]" || name == "exclude[]";
    };
    if (std::ranges::any_of(request.query, chooses)) return Rendering::page;
    if (pages_.is_short()) return Rendering::none;
    const auto [negotiated, encoding] = negotiations_.of(request.accept, request.accept_encoding);
    return pages_.is_ready(negotiated.format, encoding) ? Rendering::none : Rendering::usual;
  }
  if (request.path == kLive) {
    const bool is_there = !has(&Machine::live) || context_.machine->live->is_ready(has_sparklines(request));
    return is_there ? Rendering::none : Rendering::other;
  }
  const bool is_slow = request.path == "/" || request.path == kDevices || request.path == "/api/v1/series" ||
                       request.path == "/api/v1/health" || request.path.starts_with(kWorkloads) ||
                       request.path == kHistory || private_route(request) != nullptr;
  return is_slow ? Rendering::other : Rendering::none;
}

// What browsers poll is not limited, nor is what is short.
bool Routes::refuses(const HttpRequest& request) const noexcept {
  if (context_.web.max_requests == 0 || request.in_flight <= context_.web.max_requests) return false;
  return request.path == context_.web.telemetry_path || request.path == "/api/v1/series" ||
         request.path == "/api/v1/health" || request.path.starts_with(kWorkloads) || request.path == kHistory;
}

HttpResponse Routes::busy() const {
  return plain(503, "Limit of concurrent requests reached (" + std::to_string(context_.web.max_requests) +
                        "), try again later.\n");
}

HttpResponse Routes::series(const HttpRequest& request) const {
  std::vector<std::string_view> match;
  for (const auto& [name, value] : request.query) {
    if (name == "match" || name == "match[]") match.push_back(value);
  }
  Result<std::string> body = series_json(store_, match, SystemClock().monotonic());
  return body ? json(*std::move(body)) : plain(400, body.error().message() + "\n");
}

HttpResponse Routes::health() const {
  return json(health_json(*context_.machine->health.get(), SystemClock().monotonic()));
}

/// A unit that was started again has several costs, the last one first. The names of some workloads have
/// slashes.
HttpResponse Routes::workloads(const HttpRequest& request) const {
  const auto has_format = [](const auto& argument) {
    return argument.first == "format" && argument.second == "text";
  };
  const bool is_text = std::ranges::any_of(request.query, has_format);
  std::vector<WorkloadCost> workloads = context_.workloads();
  if (request.path != kWorkloads) {
    const std::string_view named = request.path.substr(kOneWorkload.size());
    std::erase_if(workloads,
                  [&](const WorkloadCost& each) { return each.kind + "/" + each.workload != named; });
    if (workloads.empty()) return plain(404, "No workload of this kind and name used a GPU within a day.\n");
  }
  if (!is_text) return json(workloads_json(workloads));
  std::string lines;
  for (const WorkloadCost& each : workloads) lines += workload_line(each);
  return plain(200, std::move(lines));
}

HttpResponse Routes::metrics(const HttpRequest& request) {
  const Filter filter = filter_of(request);
  if (!filter.empty()) {
    std::string complaint = complaint_about(filter, context_.collectors());
    if (!complaint.empty()) return plain(400, std::move(complaint));
  }
  const std::string_view names = names_of(request);
  if (std::string complaint = complaint_about(names); !complaint.empty()) {
    return plain(400, std::move(complaint));
  }
  const std::optional<PageDetail> detail = detail_of(request);
  if (!detail) return plain(400, "detail: unknown value. Use one of standard, full.\n");
  auto [negotiated, encoding] = negotiations_.of(request.accept, request.accept_encoding);
  if (const auto version = dcgm::version_of(names)) {
    // dcgm-exporter has no protobuf either.
    if (negotiated.format == Format::protobuf) negotiated = negotiate_format("");
    Rendered page = dcgm::render(store_, *version, negotiated.format, filter, context_.host);
    if (context_.served) context_.served();
    return {.content_type = negotiated.content_type,
            .page = make_page(std::move(page), negotiated.format, encoding),
            .headers = kMetricsHeaders};
  }
  const bool all = filter.empty();
  const Nanoseconds age = request.is_memory_short ? PageCache::kRecent : Nanoseconds{};
  const auto [format, content_type] = negotiated;
  HttpResponse response{.content_type = content_type,
                        .page = all ? pages_.recent(format, encoding, age, *detail)
                                    : pages_.filtered(format, encoding, filter, *detail),
                        .is_current = all,
                        .headers = kMetricsHeaders};
  if (context_.served) context_.served();
  return response;
}

HttpResponse Routes::devices() const {
  const std::vector<UnreadDevice> unread = context_.unread ? context_.unread() : std::vector<UnreadDevice>();
  return json(devices_json(context_.devices(), unread));
}

HttpResponse Routes::ready() const {
  if (ready_) return {.body = "OK\n", .counted = false};
  return {.status = 503,
          .body = "Not ready: the first pass over the devices has not finished.\n",
          .counted = false};
}

}  // namespace gpumeter
