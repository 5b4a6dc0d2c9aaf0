#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "exporter/access/settings.hpp"
#include "exporter/text/page.hpp"
#include "exporter/web/pages.hpp"

struct MHD_Connection;
struct MHD_Response;

namespace gpumeter {

/// A request as passed to the routes; all views are valid during the call.
struct HttpRequest {
  std::string_view method;
  std::string_view path;  ///< decoded, without the query
  std::vector<std::pair<std::string_view, std::string_view>> query;
  std::string_view accept;  ///< all headers of that name, joined by commas
  std::string_view accept_encoding;
  std::string_view if_none_match;
  std::string_view last_event_id;
  bool has_body = false;         ///< Content-Length above 0
  bool has_bad_length = false;   ///< a Content-Length that is not a number
  bool is_chunked = false;       ///< any Transfer-Encoding
  unsigned in_flight = 1;        ///< requests under way, this one included
  bool is_private = false;       ///< it came on a private listener
  bool is_memory_short = false;  ///< answers under way may hold more bytes than HttpLimits::bytes
};

/// Where the answer to a request is made.
enum class Rendering : std::uint8_t {
  none,   ///< on the HTTP thread: it is there, or takes a millisecond
  usual,  ///< elsewhere, before the others: a page of metrics without arguments
  page,   ///< elsewhere: a page of metrics with arguments
  other   ///< elsewhere
};

struct HttpHeader {
  const char* name;
  const char* value;  ///< a literal
};

class EventStream;

/// The response: a shared page, shared bytes, a stream, or its own body.
struct HttpResponse {
  unsigned status = 200;
  std::string_view content_type = "text/plain; charset=utf-8";  ///< a literal
  PagePtr page = nullptr;
  bool is_current = false;                   ///< the page is the shared one that other scrapes also get
  SharedBytes bytes = nullptr;               ///< used if there is no page
  Encoding encoding = Encoding::identity;    ///< of the shared bytes
  std::shared_ptr<EventStream> stream = {};  ///< used if there are neither; attached before make_response()
  std::string body = {};                     ///< used otherwise
  std::string etag = {};                     ///< the header ETag, if not empty
  std::span<const HttpHeader> headers = {};  ///< a static table
  bool close = false;                        ///< the connection ends with this response
  bool counted = true;                       ///< in gpumeter_http_requests_total
  std::shared_ptr<const WebGeneration> access = nullptr;  ///< adds its headers; null: none
};

/// The answer to a request that is rejected before its arguments are parsed.
struct Refusal {
  unsigned status;
  const char* text;
};

/// Called before the library reads arguments and headers: the refusal if the target is malformed, too long,
/// or has more arguments than the library may have memory for; otherwise null. `uri` is the text in the
/// library's buffer; the arguments of a refused one are cut. Any HTTP thread, as all that follow.
const Refusal* accept_line(MHD_Connection* connection, const char* uri) noexcept;

/// A header whose name is no token (such as "Content-Length "), a NUL or control character in a value, a
/// folded line, different line ends, more than one Host, or none in HTTP/1.1.
struct HeaderCheck {
  const Refusal* refusal;  ///< null: the headers are well formed
  bool announce_body;      ///< of well-formed headers: a Content-Length or a Transfer-Encoding
};
HeaderCheck check_headers(MHD_Connection* connection, const char* version) noexcept;

/// A request copied from the library. Values of a list that came in several headers are joined here.
struct Intake {
  HttpRequest request;
  std::string accept = {};
  std::string accept_encoding = {};
  std::string if_none_match = {};
  std::optional<std::string_view> authorization = {};  ///< of the only header Authorization
  bool has_two_authorizations = false;
  Nanoseconds timeout = Nanoseconds::max();  ///< the client gives up then
};
/// Fills the intake, whose address must stay, because the request refers to it.
void take_request(MHD_Connection* connection, Intake& intake);

/// libmicrohttpd's form of a response. It may be queued on many connections at once and may outlive this
/// pointer there: the library counts its own references.
using MhdResponsePtr = std::shared_ptr<MHD_Response>;
/// Null if memory is short. The bytes of a page are sent in place, without a copy.
MhdResponsePtr make_response(HttpResponse message);

}  // namespace gpumeter
