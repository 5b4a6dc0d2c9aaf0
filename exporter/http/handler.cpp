#include "exporter/http/handler.hpp"

#include <microhttpd.h>

#include <algorithm>
#include <exception>
#include <string_view>
#include <utility>

#include "exporter/http/accept_header.hpp"

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
  } else if (equals_ignoring_case(name, "Content-Length")) {
    const bool is_number = !value.empty() && value.find_first_not_of("0123456789") == std::string_view::npos;
    request.has_bad_length = request.has_bad_length || !is_number;
    request.has_body = request.has_body || value.find_first_not_of('0') != std::string_view::npos;
  } else if (equals_ignoring_case(name, "Transfer-Encoding")) {
    request.is_chunked = true;
  }
}

/// The library calls this for each header and query argument; no exception may escape.
MHD_Result take_value(void* to, MHD_ValueKind kind, const char* key, const char* text) noexcept {
  try {
    auto& intake = *static_cast<Intake*>(to);
    const std::string_view value = text == nullptr ? "" : text;
    if (kind == MHD_HEADER_KIND) {
      if (text != kNoBody) take_header(intake, key, value);
    } else {
      intake.request.query.emplace_back(key, value);
    }
    return MHD_YES;
  } catch (...) {
    return MHD_NO;
  }
}

/// The library calls this for each header; the search stops at one that announces a body.
MHD_Result find_body(void* found, MHD_ValueKind, const char* key, const char* text) noexcept {
  const bool announces = equals_ignoring_case(key, "Content-Length")
                             ? text != kNoBody
                             : equals_ignoring_case(key, "Transfer-Encoding");
  if (announces) *static_cast<bool*>(found) = true;
  return announces ? MHD_NO : MHD_YES;
}

}  // namespace

const Refusal* HttpServer::Handler::refusal_of(std::string_view uri) noexcept {
  const std::size_t query = std::min(uri.find('?'), uri.size());
  if (std::ranges::count(uri.substr(query), '&') >= kMostArguments) return &kTooManyArguments;
  return uri.size() > kLongestUri ? &kTooLong : nullptr;
}

bool HttpServer::Handler::must_answer_unread(MHD_Connection* connection, std::string_view method) noexcept {
  bool has_body = false;
  MHD_get_connection_values(connection, MHD_HEADER_KIND, find_body, &has_body);
  return (method != "GET" && method != "HEAD") || has_body;
}

bool HttpServer::Handler::answer(MHD_Connection* connection, const char* path, const char* method,
                                 const Refusal* refusal) {
  Intake intake{.request = {.method = method, .path = path, .in_flight = begin()}};
  MHD_get_connection_values(connection, MHD_HEADER_KIND, take_value, &intake);
  MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, take_value, &intake);
  HttpResponse message = refusal == nullptr
                             ? ask_routes(intake.request)
                             : HttpResponse{.status = refusal->status, .body = refusal->text, .close = true};
  const unsigned status = message.status;
  if (message.counted) count(status);
  const MhdResponsePtr response = responses_.response(std::move(message));
  return response != nullptr && MHD_queue_response(connection, status, response.get()) == MHD_YES;
}

// The book's mutex is locked only if there may be too many answers, so a scrape normally does not wait for
// it.
unsigned HttpServer::Handler::begin() {
  const unsigned in_flight = ++in_flight_;
  const unsigned limit = routes_.max_requests();
  return limit == 0 || in_flight <= limit ? in_flight : static_cast<unsigned>(connections_.answers(limit));
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
