#include "exporter/http/routes.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/text.hpp"
#include "collectors/api/event_ledger.hpp"
#include "exporter/dcgm/view.hpp"
#include "exporter/http/event_stream.hpp"
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

constexpr std::string_view kLive = "/api/v1/live";
constexpr std::string_view kWorkloads = "/api/v1/workloads";
constexpr std::string_view kOneWorkload = "/api/v1/workloads/";

constexpr std::string_view kEventStream = "text/event-stream";
/// nginx passes each event on at once.
constexpr HttpHeader kStreamHeaders[] = {kNoSniff, kNoStore, {"X-Accel-Buffering", "no"}};

/// The id of the last event that the client has.
std::uint64_t last_event(const HttpRequest& request) noexcept {
  return parse_number<std::uint64_t>(request.last_event_id).value_or(0);
}

/// Events, and pictures if they have a source.
HttpResponse streamed(const HttpRequest& request, const Machine& machine, const Clock& clock,
                      LiveAnswers* pictures) {
  return {.content_type = kEventStream,
          .stream = std::make_shared<EventStream>(machine, clock, last_event(request), pictures),
          .headers = kStreamHeaders};
}

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
  if (names == kOwnNames || dcgm::kVersionNames.find(names)) return {};
  std::string choices(kOwnNames);
  for (const auto& [version, name] : dcgm::kVersionNames) choices.append(", ").append(name);
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

/// A path and its answer. The private ones and that of the metrics page are not among them.
struct Routes::Route {
  std::string_view path;
  bool is_slow;     ///< may take long with many GPUs and jobs
  bool is_limited;  ///< by web.max_requests: not what browsers poll, nor what is short
  Answer (*answer)(const Routes& of, const HttpRequest& request);

  static const Route kAll[];

  static Answer events(const Routes& of, const HttpRequest& request);
  static Answer stream(const Routes& of, const HttpRequest& request);
};

constinit const Routes::Route Routes::Route::kAll[] = {
    {"/-/healthy", false, false,
     [](const Routes&, const HttpRequest&) -> Answer {
       return HttpResponse{.body = "OK\n", .counted = false};
     }},
    {"/-/ready", false, false,
     [](const Routes& of, const HttpRequest&) -> Answer {
       if (of.ready_) return HttpResponse{.body = "OK\n", .counted = false};
       return HttpResponse{.status = 503,
                           .body = "Not ready: the first pass over the devices has not finished.\n",
                           .counted = false};
     }},
    {"/api/v1/devices", true, false,
     [](const Routes& of, const HttpRequest&) -> Answer {
       return json(devices_json(of.context_.devices(), of.unread()));
     }},
    {"/api/v1/series", true, true,
     [](const Routes& of, const HttpRequest& request) -> Answer {
       std::vector<std::string_view> match;
       for (const auto& [name, value] : request.query) {
         if (name == "match" || name == "match[]") match.push_back(value);
       }
       Result<std::string> body = series_json(of.store_, match, SystemClock().monotonic());
       return body ? json(*std::move(body)) : plain(400, body.error().message() + "\n");
     }},
    {"/api/v1/health", true, true,
     [](const Routes& of, const HttpRequest&) -> Answer {
       if (of.context_.machine == nullptr) return std::nullopt;
       return json(health_json(*of.context_.machine->health.get(), SystemClock().monotonic()));
     }},
    {"/api/v1/events", false, false, events},
    {"/api/v1/stream", false, false, stream},
    {kWorkloads, true, true,
     [](const Routes& of, const HttpRequest& request) -> Answer {
       // A unit that was started again has several costs, the last one first. The names of some workloads
       // have slashes.
       if (!of.context_.workloads) return std::nullopt;
       const auto has_format = [](const auto& argument) {
         return argument.first == "format" && argument.second == "text";
       };
       std::vector<WorkloadCost> workloads = of.context_.workloads();
       if (request.path.starts_with(kOneWorkload)) {
         const std::string_view named = request.path.substr(kOneWorkload.size());
         std::erase_if(workloads,
                       [&](const WorkloadCost& each) { return each.kind + "/" + each.workload != named; });
         if (workloads.empty())
           return plain(404, "No workload of this kind and name used a GPU within a day.\n");
       }
       if (std::ranges::none_of(request.query, has_format)) return json(workloads_json(workloads));
       std::string lines;
       for (const WorkloadCost& each : workloads) lines += workload_line(each);
       return plain(200, std::move(lines));
     }},
    {kLive, true, false,
     [](const Routes& of, const HttpRequest& request) -> Answer {
       if (!of.has(&Machine::live)) return std::nullopt;
       LiveAnswers& live = *of.context_.machine->live;
       return encoded(request, has_sparklines(request) ? live.with_sparklines() : live.live(),
                      "application/json", kDataHeaders);
     }},
    {"/api/v1/history", true, true,
     [](const Routes& of, const HttpRequest& request) -> Answer {
       if (!of.has(&Machine::history)) return std::nullopt;
       Result<std::string> body = history_json(*of.context_.machine->history, request.query);
       if (!body) return plain(400, body.error().message() + "\n");
       return encoded(request, EncodedText::of(*std::move(body)), "application/json", kDataHeaders);
     }},
    {"/", true, false,
     [](const Routes& of, const HttpRequest& request) -> Answer {
       const Asset page(status_page(of.context_.devices(), of.unread(), of.context_.web.telemetry_path,
                                    of.context_.build));
       return revalidated(request, page, "text/html; charset=utf-8", kPageHeaders);
     }},
    {"/gpumeter.css", false, false,
     [](const Routes& of, const HttpRequest& request) -> Answer {
       return revalidated(request, of.style_, "text/css; charset=utf-8", kAssetHeaders);
     }},
    {"/gpumeter.js", false, false,
     [](const Routes& of, const HttpRequest& request) -> Answer {
       return revalidated(request, of.script_, "text/javascript; charset=utf-8", kAssetHeaders);
     }},
    {"/runbooks", false, false,
     [](const Routes& of, const HttpRequest& request)
         -> Answer { return revalidated(request, of.runbooks_, "text/html; charset=utf-8", kPageHeaders); }},
};

Routes::Answer Routes::Route::events(const Routes& of, const HttpRequest& request) {
  const Machine* const machine = of.context_.machine;
  if (machine == nullptr || machine->events == nullptr) return std::nullopt;
  if (request.accept.find(kEventStream) != std::string_view::npos)
    return streamed(request, *machine, of.clock_, nullptr);
  return json(events_json(machine->events->after(last_event(request)), *machine->known_devices.get()));
}

Routes::Answer Routes::Route::stream(const Routes& of, const HttpRequest& request) {
  if (!of.has(&Machine::live) || of.context_.machine->events == nullptr) return std::nullopt;
  return streamed(request, *of.context_.machine, of.clock_, of.context_.machine->live);
}

const Routes::Route* Routes::route_of(std::string_view path) noexcept {
  if (path.starts_with(kOneWorkload)) path = kWorkloads;
  const auto* const found = std::ranges::find(Route::kAll, path, &Route::path);
  return found == std::end(Route::kAll) ? nullptr : found;
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
  if (const auto* const body = private_route(request)) return json((*body)());
  std::optional<HttpResponse> response;
  if (const Route* const route = route_of(request.path)) response = route->answer(*this, request);
  return response ? *std::move(response) : plain(404, "Not found.\n");
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
  const Route* const route = route_of(request.path);
  const bool is_slow = (route != nullptr && route->is_slow) || private_route(request) != nullptr;
  return is_slow ? Rendering::other : Rendering::none;
}

bool Routes::refuses(const HttpRequest& request) const noexcept {
  if (context_.web.max_requests == 0 || request.in_flight <= context_.web.max_requests) return false;
  const Route* const route = route_of(request.path);
  return request.path == context_.web.telemetry_path || (route != nullptr && route->is_limited);
}

HttpResponse Routes::busy() const {
  return plain(503, "Limit of concurrent requests reached (" + std::to_string(context_.web.max_requests) +
                        "), try again later.\n");
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
  if (const auto version = dcgm::kVersionNames.find(names)) {
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
                        .page = all ? pages_.page(format, encoding, *detail, age)
                                    : pages_.filtered(format, encoding, filter, *detail),
                        .is_current = all,
                        .headers = kMetricsHeaders};
  if (context_.served) context_.served();
  return response;
}

}  // namespace gpumeter
