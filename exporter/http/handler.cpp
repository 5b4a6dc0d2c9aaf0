#include "exporter/http/handler.hpp"

#include <microhttpd.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <exception>
#include <optional>
#include <string_view>
#include <utility>

#include "base/text.hpp"
#include "exporter/http/negotiation/accept_header.hpp"
#include "exporter/http/negotiation/negotiate.hpp"

namespace gpumeter {
namespace {

/// Both limits are far above a scraper's needs. The library uses half of a request's 16 KiB as its read
/// buffer. Each argument takes about 60 bytes in addition to its text.
constexpr std::ptrdiff_t kMostArguments = 64;
constexpr std::size_t kLongestUri = 4096;

/// A request while it is copied from the library. Values of a list that came in several headers are joined
/// here.
struct Intake {
  HttpRequest request;
  std::string accept;
  std::string accept_encoding;
  std::string if_none_match;
  std::optional<std::string_view> authorization;
  bool has_two_authorizations = false;
  Nanoseconds timeout = Nanoseconds::max();  ///< the client gives up then
};

void append_to_list(std::string_view& list, std::string_view value, std::string& joined) {
  if (list.empty()) {
    list = value;
  } else {
    joined = std::string(list).append(",").append(value);
    list = joined;
  }
}

void take_header(Intake& intake, std::string_view name, std::string_view value) {
  HttpRequest& request = intake.request;
  if (equals_ignoring_case(name, "Accept")) {
    append_to_list(request.accept, value, intake.accept);
  } else if (equals_ignoring_case(name, "Accept-Encoding")) {
    append_to_list(request.accept_encoding, value, intake.accept_encoding);
  } else if (equals_ignoring_case(name, "If-None-Match")) {
    append_to_list(request.if_none_match, value, intake.if_none_match);
  } else if (equals_ignoring_case(name, "Authorization")) {
    intake.has_two_authorizations = intake.has_two_authorizations || intake.authorization.has_value();
    intake.authorization = value;
  } else if (equals_ignoring_case(name, "Content-Length")) {
    const bool is_number = !value.empty() && value.find_first_not_of("0123456789") == std::string_view::npos;
    request.has_bad_length = request.has_bad_length || !is_number;
    request.has_body = request.has_body || value.find_first_not_of('0') != std::string_view::npos;
  } else if (equals_ignoring_case(name, "Transfer-Encoding")) {
    request.is_chunked = true;
  } else if (equals_ignoring_case(name, "X-Prometheus-Scrape-Timeout-Seconds")) {
    intake.timeout = std::min(intake.timeout, scrape_timeout(value));
  }
}

/// The library calls this for each header and query argument; no exception may escape.
// NOLINTNEXTLINE(readability-function-size): the library's parameters
MHD_Result take_value(void* to, MHD_ValueKind kind, const char* key, std::size_t key_size, const char* text,
                      std::size_t text_size) noexcept {
  try {
    auto& intake = *static_cast<Intake*>(to);
    if (kind != MHD_HEADER_KIND) {
      intake.request.query.emplace_back(key,
                                        text == nullptr ? "" : text);  // an argument ends at its first NUL
    } else if (text != kNoBody) {
      take_header(intake, {key, key_size}, {text, text == nullptr ? 0 : text_size});
    }
    return MHD_YES;
  } catch (...) {
    return MHD_NO;
  }
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

/// True for HttpServer::probe(), whose connections have an address that no accepted socket has.
bool is_own_probe(MHD_Connection* connection) noexcept {
  const MHD_ConnectionInfo* peer = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
  return peer != nullptr && peer->client_addr != nullptr && peer->client_addr->sa_family == AF_UNSPEC;
}

}  // namespace

HttpConnection* HttpServer::Handler::entry_of(MHD_Connection* connection) noexcept {
  const MHD_ConnectionInfo* info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
  return info == nullptr ? nullptr : static_cast<HttpConnection*>(info->socket_context);
}

std::string HttpServer::Handler::peer_key(MHD_Connection* connection) {
  const HttpConnection* const entry = entry_of(connection);
  return entry == nullptr ? "" : entry->peer().key;
}

const Refusal* HttpServer::Handler::refusal_of(const char* text) noexcept {
  if (text == nullptr) return nullptr;
  const std::string_view uri = text;
  const std::size_t query = std::min(uri.find('?'), uri.size());
  if (std::ranges::count(uri.substr(query), '&') >= kMostArguments) return &kTooManyArguments;
  return uri.size() > kLongestUri ? &kTooLong : malformed_line(text);
}

HttpServer::Handler::Outcome HttpServer::Handler::answer(MHD_Connection* connection,
                                                         const RequestLine& line) {
  const unsigned in_flight = ++in_flight_;
  Intake intake{.request = {.method = line.method, .path = line.path}};
  MHD_get_connection_values_n(connection, MHD_HEADER_KIND, take_value, &intake);
  MHD_get_connection_values_n(connection, MHD_GET_ARGUMENT_KIND, take_value, &intake);
  if (intake.has_two_authorizations) intake.authorization = std::nullopt;
  std::optional<HttpResponse> rendered;
  if (line.is_resumed) rendered = renderings_.answer_to(connection);
  Admission admission = admit(connection, line, intake.authorization);
  if (admission.verdict == Verdict::waits) {
    completed();  // it is not under way; a later call begins again
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
    if (!rendered) rendered = answer_or_pause(connection, request, in_flight);
    if (!rendered) {
      completed();
      return Outcome::paused;
    }
    message = *std::move(rendered);
  }
  message.access = std::move(admission.generation);
  return queue(connection, std::move(message), intake.timeout) ? Outcome::queued : Outcome::failed;
}

// nullopt: the request is paused until its page is rendered.
std::optional<HttpResponse> HttpServer::Handler::answer_or_pause(MHD_Connection* connection,
                                                                 HttpRequest& request, unsigned in_flight) {
  request.in_flight = make_room(connection, in_flight);
  request.is_memory_short = connections_.may_hold_too_much();
  const Rendering rendering = routes_.rendering_of(request);
  if (rendering == Rendering::none) return ask_routes(request);
  return renderings_.answer(request, {connection, peer_key(connection), rendering}, kPausing);
}

// A refusal reveals nothing, so it needs no user. The daemon's own probe passes without a user and a token.
Admission HttpServer::Handler::admit(MHD_Connection* connection, const RequestLine& line,
                                     std::optional<std::string_view> authorization) {
  if (access_ == nullptr || is_own_probe(connection)) return {};
  if (line.refusal != nullptr) return access_->admit_unseen();
  return access_->admit({connection, authorization, line.is_resumed, peer_key(connection)}, kPausing);
}

bool HttpServer::Handler::queue(MHD_Connection* connection, HttpResponse message, Nanoseconds timeout) {
  const unsigned status = message.status;
  if (message.counted) count(status);
  if (HttpConnection* const entry = entry_of(connection); entry != nullptr) {
    const Page* const page = message.page.get();
    const std::string* const bytes = message.bytes.get();
    if (page != nullptr) {
      entry->sends(page, page->bytes().size(), timeout);
    } else if (bytes != nullptr) {
      entry->sends(bytes, bytes->size(), timeout);
    } else {
      entry->sends(entry, message.body.size(), timeout);  // its own
    }
  }
  const MhdResponsePtr response = responses_.response(std::move(message));
  return response != nullptr && MHD_queue_response(connection, status, response.get()) == MHD_YES;
}

void HttpServer::Handler::release(void* request) noexcept {
  renderings_.release(request);
  if (access_ != nullptr) access_->release(request);
}

void HttpServer::Handler::forget(MHD_Connection* connection) noexcept {
  renderings_.forget(connection);
  if (access_ != nullptr) access_->forget(connection);
}

// The book's mutex is locked only if there may be too many answers or bytes, so a scrape normally does not
// wait for it.
unsigned HttpServer::Handler::make_room(MHD_Connection* connection, unsigned in_flight) {
  const unsigned limit = routes_.max_requests() == 0 ? UINT_MAX - 1 : routes_.max_requests();
  if (in_flight <= limit && !connections_.may_hold_too_much()) return in_flight;
  return static_cast<unsigned>(connections_.make_room_for_answers(limit, entry_of(connection)));
}

HttpResponse HttpServer::Handler::ask_routes(const HttpRequest& request) noexcept {
  try {
    return routes_.answer(request);
  } catch (const std::exception&) {
    return {.status = 500, .body = "Internal error.\n"};
  }
}

void HttpServer::Handler::count(unsigned status) noexcept {
  for (std::size_t i = 0; i < kCodes.size(); ++i) {
    if (kCodes[i] == status) ++counts_[i];
  }
}

HttpCounts HttpServer::Handler::counts() const {
  HttpCounts result;
  for (std::size_t i = 0; i < kCodes.size(); ++i) result.emplace_back(kCodes[i], counts_[i].load());
  return result;
}

}  // namespace gpumeter
