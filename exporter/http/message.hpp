#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "exporter/access/settings.hpp"
#include "exporter/text/page.hpp"
#include "exporter/web/assets.hpp"

struct MHD_Connection;

namespace gpumeter {

/// A request as passed to the routes; all views are valid during the call.
struct HttpRequest {
  std::string_view method;
  std::string_view path;  ///< decoded, without the query
  std::vector<std::pair<std::string_view, std::string_view>> query;
  std::string_view accept;  ///< all headers of that name, joined by commas
  std::string_view accept_encoding;
  std::string_view if_none_match;
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

/// The response: a shared page, shared bytes, or its own body.
struct HttpResponse {
  unsigned status = 200;
  std::string_view content_type = "text/plain; charset=utf-8";  ///< a literal
  PagePtr page = nullptr;
  bool is_current = false;                   ///< the page is the shared one that other scrapes also get
  SharedBytes bytes = nullptr;               ///< used if there is no page
  Encoding encoding = Encoding::identity;    ///< of the shared bytes
  std::string body = {};                     ///< used if there are neither
  std::string etag = {};                     ///< the header ETag, if not empty
  std::span<const HttpHeader> headers = {};  ///< a static table
  bool close = false;                        ///< the connection ends with this response
  bool counted = true;                       ///< in gpumeter_http_requests_total
  std::shared_ptr<const WebGeneration> access = nullptr;  ///< adds its headers; null: none
};

// Requests that libmicrohttpd 0.9.75 accepts although a proxy may read them differently. All of them are
// answered 400, and the connection closes. Any HTTP thread.
//
// The library ends each string at its first NUL and reports no length, so a NUL is found by the distance to
// the next string. Two cases stay unseen: a NUL at the very end of the last header, and a last header that
// alone ends with LF. An empty line that alone ends with LF is found unless the byte after it, which is left
// from an earlier request, is 0. Other line ends of both kinds in one request are malformed.
//
// The library's own strictness (MHD_OPTION_STRICT_FOR_CLIENT) stays at its default: at 1 it answers a
// missing Host itself, without the configured headers, and closes without an answer for a space in the
// target; at -1 it answers a space before a colon itself.

/// The answer to a request that is rejected before its arguments are parsed.
struct Refusal {
  unsigned status;
  const char* text;
};

/// The Content-Length added to each request before its client's headers; recognised by its address.
inline constexpr char kNoBody[] = "0";

/// A space, a control character or a NUL in the target, also "%00". `uri` is the text in the library's
/// buffer.
const Refusal* malformed_line(const char* uri) noexcept;

/// A header whose name is no token (such as "Content-Length "), a NUL or control character in a value, a
/// folded line, different line ends, more than one Host, or none in HTTP/1.1.
struct HeaderCheck {
  const Refusal* refusal;  ///< null: the headers are well formed
  bool announce_body;      ///< of well-formed headers: a Content-Length or a Transfer-Encoding
};
HeaderCheck check_headers(MHD_Connection* connection, const char* version) noexcept;

}  // namespace gpumeter
