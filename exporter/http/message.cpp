#include "exporter/http/message.hpp"

#include <microhttpd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "exporter/http/event_stream.hpp"
#include "exporter/http/negotiation.hpp"

namespace gpumeter {
namespace {

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

constexpr Refusal kBadLine{400, "The request line is malformed.\n"};
constexpr Refusal kBadHeader{400, "A header is malformed.\n"};
constexpr Refusal kNotOneHost{400, "Exactly one Host header is required.\n"};

constexpr Refusal kTooLong{414, "The request line is too long.\n"};
constexpr Refusal kTooManyArguments{400, "More than 64 arguments are not allowed.\n"};

/// Both limits are far above a scraper's needs. The library uses half of a request's 16 KiB as its read
/// buffer. Each argument takes about 60 bytes in addition to its text.
constexpr std::ptrdiff_t kMostArguments = 64;
constexpr std::size_t kLongestUri = 4096;

/// The Content-Length added to each request before its client's headers; recognised by its address.
constexpr char kNoBody[] = "0";

/// The library decodes it, and its strings then end there.
constexpr const char* kEscapedNul = "%00";

/// In later versions the library itself refuses a NUL, and its strings may lie anywhere.
constexpr bool kIsOneBuffer = MHD_VERSION < 0x01000000;

/// What a byte may be part of.
struct Grammar {
  bool token : 1;  ///< RFC 9110 section 5.6.2
  bool value : 1;  ///< RFC 9110 section 5.5; bytes above ASCII are allowed
};

/// A table, because every byte of every request's headers is looked up.
constexpr std::array<Grammar, 256> kGrammar = [] {
  constexpr std::string_view kSeparators = "\"(),/:;<=>?@[\\]{} ";
  std::array<Grammar, 256> grammar{};
  for (std::size_t c = 0; c < grammar.size(); ++c) {
    const bool is_control = c < 0x20 || c == 0x7f;
    const bool is_separator = kSeparators.find(static_cast<char>(c)) != std::string_view::npos;
    grammar[c] = {!is_control && !is_separator && c < 0x80, !is_control || c == '\t'};
  }
  return grammar;
}();

Grammar grammar_of(char c) noexcept { return kGrammar[static_cast<unsigned char>(c)]; }

bool is_token(std::string_view text) noexcept {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return grammar_of(c).token; });
}

bool is_value(std::string_view text) noexcept {
  return std::ranges::all_of(text, [](char c) { return grammar_of(c).value; });
}

const char* end_of(const char* text) noexcept { return text + std::strlen(text); }

struct Headers {
  const char* end;              ///< of the text before the next header
  std::ptrdiff_t line_end = 0;  ///< bytes of each line's end; 0: no header yet
  bool are_good = true;
  bool announce_body = false;
  unsigned hosts = 0;
};

/// The library replaces the end of a line by NULs: two, or one for clients that end lines with LF alone.
bool follows(const char* line, Headers& headers) noexcept {
  const std::ptrdiff_t gap = line - headers.end;
  const bool is_first = headers.line_end == 0 && (gap == 1 || gap == 2);
  if (is_first) headers.line_end = gap;
  return is_first || gap == headers.line_end;
}

/// After the last header come the ends of its line and of the empty line.
bool end_well(const Headers& headers) noexcept {
  const std::ptrdiff_t size = 2 * std::max(headers.line_end, std::ptrdiff_t{1});
  return std::all_of(headers.end, headers.end + size, [](char c) { return c == '\0'; });
}

bool announces_body(std::string_view name) noexcept {
  return equals_ignoring_case(name, "Content-Length") || equals_ignoring_case(name, "Transfer-Encoding");
}

/// The library calls this for each header in the order of the request. It found the lengths by the strings'
/// first NULs.
// NOLINTNEXTLINE(readability-function-size): the library's parameters
MHD_Result check_header(void* to, MHD_ValueKind, const char* name_text, std::size_t name_size,
                        const char* value_text, std::size_t value_size) noexcept {
  auto& headers = *static_cast<Headers*>(to);
  if (value_text == kNoBody) return MHD_YES;
  const std::string_view name(name_text, name_size);
  const std::string_view value(value_text, value_text == nullptr ? 0 : value_size);
  headers.are_good = value_text != nullptr && (!kIsOneBuffer || follows(name_text, headers)) &&
                     is_token(name) && is_value(value);
  if (!headers.are_good) return MHD_NO;
  headers.hosts += equals_ignoring_case(name, "Host") ? 1U : 0U;
  headers.announce_body = headers.announce_body || announces_body(name);
  headers.end = value.data() + value.size();
  return MHD_YES;
}

/// A space, a control character or a NUL in the target, also "%00".
const Refusal* malformed_line(const char* uri) noexcept {
  constexpr std::string_view kVersion = "HTTP/";
  const bool is_good =
      is_value(uri) && std::strpbrk(uri, " \t") == nullptr && std::strstr(uri, kEscapedNul) == nullptr;
  const char* const next = end_of(uri) + 1;
  const bool is_whole = !kIsOneBuffer || std::strncmp(next, kVersion.data(), kVersion.size()) == 0;
  return is_good && is_whole ? nullptr : &kBadLine;
}

/// libmicrohttpd 0.9.75 leaves a connection unanswered if its arguments need more memory than it has. Cutting
/// the query leaves it nothing to parse. The text is in the connection's own buffer.
void cut_arguments(const char* uri) noexcept {
#if MHD_VERSION < 0x01000000
  if (const char* query = std::strchr(uri, '?'); query != nullptr && query[1] != '\0') {
    const_cast<char*>(query)[1] = '\0';
  }
#else
  static_cast<void>(uri);
#endif
}

/// The refusal if `uri` is malformed or if the library may lack the memory to parse it, otherwise null.
const Refusal* refusal_of(const char* text) noexcept {
  if (text == nullptr) return nullptr;
  const std::string_view uri = text;
  const std::size_t query = std::min(uri.find('?'), uri.size());
  if (std::ranges::count(uri.substr(query), '&') >= kMostArguments) return &kTooManyArguments;
  return uri.size() > kLongestUri ? &kTooLong : malformed_line(text);
}

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
  } else if (equals_ignoring_case(name, "Last-Event-ID")) {
    request.last_event_id = value;
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

/// A response whose bytes live as long as `owner`. The library destroys `owner` after the last connection.
template <class Owner>
MHD_Response* share(std::string_view bytes, Owner owner) {
  void* data = const_cast<char*>(bytes.data());  // the library only reads it
#if MHD_VERSION >= 0x00097302
  auto* kept = new Owner(std::move(owner));
  const auto drop = [](void* object) noexcept { delete static_cast<Owner*>(object); };
  MHD_Response* response =
      MHD_create_response_from_buffer_with_free_callback_cls(bytes.size(), data, drop, kept);
  if (response == nullptr) delete kept;
  return response;
#else
  return MHD_create_response_from_buffer(bytes.size(), data, MHD_RESPMEM_MUST_COPY);
#endif
}

/// A response that the library asks for more bytes until the stream ends.
MHD_Response* stream_of(std::shared_ptr<EventStream> stream) {
  constexpr std::size_t kPiece = 2048;
  auto kept = std::make_unique<std::shared_ptr<EventStream>>(std::move(stream));
  const auto read = [](void* object, std::uint64_t, char* to, std::size_t most) noexcept -> ssize_t {
    static_assert(EventStream::kEnd == MHD_CONTENT_READER_END_OF_STREAM);
    try {
      return (*static_cast<std::shared_ptr<EventStream>*>(object))->read(to, most);
    } catch (...) {  // out of memory
      return MHD_CONTENT_READER_END_WITH_ERROR;
    }
  };
  const auto drop = [](void* object) noexcept { delete static_cast<std::shared_ptr<EventStream>*>(object); };
  MHD_Response* response =
      MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, kPiece, read, kept.get(), drop);
  if (response != nullptr) static_cast<void>(kept.release());
  return response;
}

MHD_Response* create(HttpResponse& message) {
  if (message.stream != nullptr) return stream_of(std::move(message.stream));
  if (message.page != nullptr) return share(message.page->bytes, message.page);
  if (message.bytes != nullptr) return share(*message.bytes, message.bytes);
  // The text moves to its final place before a view of it is taken, because a short text lies inside its
  // string object.
  auto body = std::make_shared<const std::string>(std::move(message.body));
  const std::string_view bytes = *body;
  return share(bytes, std::move(body));
}

/// An answer's own header has precedence, as in exporter-toolkit: the live page's policy is stricter than one
/// for all pages.
void add_configured_headers(MHD_Response* response, const WebGeneration* access) {
  if (access == nullptr) return;
  for (const auto& [name, value] : access->settings.headers) {
    if (MHD_get_response_header(response, name.c_str()) != nullptr) continue;
    MHD_add_response_header(response, name.c_str(), value.c_str());
  }
}

}  // namespace

const Refusal* accept_line(MHD_Connection* connection, const char* uri) noexcept {
  const Refusal* refusal = refusal_of(uri);
  // libmicrohttpd 0.9.75 sends the status line twice if a Content-Length is not a number. The library reads
  // only the first such header, which is this one; the handler reads the client's.
  const MHD_Result added = MHD_set_connection_value(connection, MHD_HEADER_KIND, "Content-Length", kNoBody);
  if (added != MHD_YES) refusal = &kTooLong;
  if (refusal != nullptr && uri != nullptr) cut_arguments(uri);
  return refusal;
}

HeaderCheck check_headers(MHD_Connection* connection, const char* version) noexcept {
  Headers headers{.end = end_of(version)};
  MHD_get_connection_values_n(connection, MHD_HEADER_KIND, check_header, &headers);
  if (!headers.are_good || (kIsOneBuffer && !end_well(headers))) return {&kBadHeader, true};
  const bool needs_host = std::string_view(version) == MHD_HTTP_VERSION_1_1;
  const bool has_one_host = headers.hosts == 1 || (headers.hosts == 0 && !needs_host);
  return {has_one_host ? nullptr : &kNotOneHost, headers.announce_body};
}

void take_request(MHD_Connection* connection, Intake& intake) {
  MHD_get_connection_values_n(connection, MHD_HEADER_KIND, take_value, &intake);
  MHD_get_connection_values_n(connection, MHD_GET_ARGUMENT_KIND, take_value, &intake);
  if (intake.has_two_authorizations) intake.authorization = std::nullopt;
}

MhdResponsePtr make_response(HttpResponse message) {
  MHD_Response* created = create(message);
  if (created == nullptr) return nullptr;
  const Encoding encoding = message.page == nullptr ? message.encoding : message.page->encoding;
  MhdResponsePtr response(created, MHD_destroy_response);
  MHD_add_response_header(created, "Content-Type", std::string(message.content_type).c_str());
  for (const HttpHeader& header : message.headers) {
    MHD_add_response_header(created, header.name, header.value);
  }
  if (encoding == Encoding::gzip) MHD_add_response_header(created, "Content-Encoding", "gzip");
  if (!message.etag.empty()) MHD_add_response_header(created, "ETag", message.etag.c_str());
  add_configured_headers(created, message.access.get());
  if (message.close) MHD_add_response_header(created, "Connection", "close");
  return response;
}

}  // namespace gpumeter
