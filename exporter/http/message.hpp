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

}  // namespace gpumeter
