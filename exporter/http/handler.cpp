#include "exporter/http/handler.hpp"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstring>
#include <exception>
#include <utility>

#include "exporter/http/negotiation.hpp"
#include "exporter/tls/context.hpp"

namespace gpumeter {
namespace {

constexpr Refusal kTooLong{414, "The request line is too long.\n"};
constexpr Refusal kTooManyArguments{400, "More than 64 arguments are not allowed.\n"};

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

/// Start of the log message for each answer that the library sends by itself; the status is its first
/// argument.
constexpr std::string_view kRefused = "Error processing request (HTTP response code is %u";

/// Start of the log message after an accept() that failed for lack of a descriptor or of memory.
constexpr std::string_view kAcceptFailed = "Hit process or system resource limit";

/// A request's context while it is paused; recognised by its address.
constexpr char kPaused = 0;

const sockaddr* peer_of(MHD_Connection* connection) {
  const MHD_ConnectionInfo* peer = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
  return peer == nullptr ? nullptr : peer->client_addr;
}

/// The connection's entry in the book; null if there was no memory for it.
HttpConnection* entry_of(MHD_Connection* connection) noexcept {
  const MHD_ConnectionInfo* info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
  return info == nullptr ? nullptr : static_cast<HttpConnection*>(info->socket_context);
}

/// Peer::key of the client; empty if the book has no entry.
std::string peer_key(MHD_Connection* connection) {
  const HttpConnection* const entry = entry_of(connection);
  return entry == nullptr ? "" : entry->peer().key;
}

bool is_private(MHD_Connection* connection) noexcept {
  const HttpConnection* const entry = entry_of(connection);
  return entry != nullptr && entry->is_private();
}

/// False if the routes reject the method, whatever is requested.
bool is_method_known(std::string_view method) noexcept { return method == "GET" || method == "HEAD"; }

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

MHD_Response* create(HttpResponse& message) {
  if (message.page != nullptr) return share(message.page->bytes(), message.page);
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

MhdResponsePtr make_response(HttpResponse message) {
  MHD_Response* created = create(message);
  if (created == nullptr) return nullptr;
  const Encoding encoding = message.page == nullptr ? message.encoding : message.page->encoding();
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

}  // namespace

void RollCall::hold() {
  const MutexLock lock(mutex_);
  is_held_ = true;
}

void RollCall::release() noexcept {
  const MutexLock lock(mutex_);
  is_held_ = false;
  changed_.notify_all();
}

// Each wait has a limit (base/mutex.hpp); the loop looks again.
void RollCall::answer(int descriptor) {
  constexpr auto kLook = std::chrono::milliseconds(100);
  static_cast<void>(send(descriptor, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT));
  const MutexLock lock(mutex_);
  while (is_held_) changed_.wait_for(mutex_, kLook);
}

MhdResponsePtr ResponseCache::response(HttpResponse message) {
  if (!message.is_current) return make_response(std::move(message));
  if (MhdResponsePtr found = find(message)) return found;
  MhdResponsePtr made = make_response(message);
  keep({message.content_type, std::move(message.page), std::move(message.access), made});
  return made;
}

MhdResponsePtr ResponseCache::find(const HttpResponse& message) const {
  MutexLock lock(mutex_);
  for (const Entry& entry : entries_) {
    if (entry.page == message.page && entry.content_type == message.content_type &&
        entry.access == message.access) {
      return entry.response;
    }
  }
  return nullptr;
}

void ResponseCache::keep(Entry entry) {
  MutexLock lock(mutex_);
  std::erase_if(entries_, [&](const Entry& old) {
    const bool is_old = old.page != entry.page || old.access != entry.access;
    return is_old && old.page->format() == entry.page->format() &&
           old.page->encoding() == entry.page->encoding();
  });
  entries_.push_back(std::move(entry));
}

void HttpServer::Handler::on_connection(void* handler, MHD_Connection* connection, void** context,
                                        MHD_ConnectionNotificationCode code) noexcept {
  static_cast<Handler*>(handler)->change(connection, context, code, false);
}

void HttpServer::Handler::on_private_connection(void* handler, MHD_Connection* connection, void** context,
                                                MHD_ConnectionNotificationCode code) noexcept {
  static_cast<Handler*>(handler)->change(connection, context, code, true);
}

void HttpServer::Handler::change(MHD_Connection* connection, void** context,
                                 MHD_ConnectionNotificationCode code, bool is_private) noexcept {
  // The library creates its threads; each one is named at its first connection.
  thread_local const int named = pthread_setname_np(pthread_self(), "http");
  static_cast<void>(named);
  if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
    connections_.closed(static_cast<HttpConnection*>(*context));
    return;
  }
  try {
    const sockaddr* peer = peer_of(connection);
    const int descriptor = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    if (RollCall::is_asked_by(peer)) return roll_call_.answer(descriptor);
    HttpConnection* const entry = connections_.opened(descriptor, Peer::of(peer, descriptor, owners_));
    *context = entry;
    if (is_private) return entry->set_private();
    if (is_tls_) open_tls(connection, *entry);
  } catch (...) {  // out of memory: plain HTTP is served without a deadline; a TLS handshake fails
  }
}

// NOLINTNEXTLINE(readability-function-size): the library's parameters
int HttpServer::Handler::on_missing_certificate(gnutls_session_t, const gnutls_datum_t*, int,
                                                const gnutls_pk_algorithm_t*, int, gnutls_pcert_st**,
                                                unsigned*, gnutls_privkey_t*) noexcept {
  return -1;
}

void* HttpServer::Handler::on_request_line(void*, const char* uri, MHD_Connection* connection) noexcept {
  const Refusal* refusal = refusal_of(uri);
  // libmicrohttpd 0.9.75 sends the status line twice if a Content-Length is not a number. The library reads
  // only the first such header, which is this one; the handler reads the client's.
  const MHD_Result added = MHD_set_connection_value(connection, MHD_HEADER_KIND, "Content-Length", kNoBody);
  if (added != MHD_YES) refusal = &kTooLong;
  if (refusal != nullptr && uri != nullptr) cut_arguments(uri);
  return const_cast<Refusal*>(refusal);
}

// NOLINTNEXTLINE(readability-function-size): the library's parameters
MHD_Result HttpServer::Handler::on_request(void* handler, MHD_Connection* connection, const char* path,
                                           const char* method, const char* version, const char*,
                                           std::size_t* body_size, void** request) noexcept {
  *body_size = 0;
  const bool is_resumed = *request == &kPaused;
  const bool seen = is_resumed || *request == connection;
  const auto* refusal = seen ? nullptr : static_cast<const Refusal*>(*request);
  *request = connection;
  if (!seen && refusal == nullptr) {
    const HeaderCheck headers = check_headers(connection, version);
    refusal = headers.refusal;
    if (refusal == nullptr && !headers.announce_body && is_method_known(method)) return MHD_YES;
  }
  HttpConnection* const entry = entry_of(connection);
  if (entry != nullptr) entry->asked();
  *request = handler;
  try {
    const auto outcome =
        static_cast<Handler*>(handler)->answer(connection, {path, method, refusal, is_resumed});
    if (outcome == Handler::Outcome::paused) {
      *request = const_cast<char*>(&kPaused);
      if (entry != nullptr) entry->paused(connection);
    }
    return outcome == Handler::Outcome::failed ? MHD_NO : MHD_YES;
  } catch (...) {
    return MHD_NO;
  }
}

void HttpServer::Handler::on_completed(void* handler, MHD_Connection* connection, void** request,
                                       MHD_RequestTerminationCode) noexcept {
  if (*request == handler) {
    --static_cast<Handler*>(handler)->in_flight_;
    if (HttpConnection* entry = entry_of(connection); entry != nullptr) entry->answered();
  } else if (*request == &kPaused) {
    static_cast<Handler*>(handler)->renderings_.forget(connection);
    if (WebAccess* const access = static_cast<Handler*>(handler)->access_) access->forget(connection);
  }
  *request = nullptr;
}

void HttpServer::Handler::on_message(void* handler, const char* format, std::va_list arguments) noexcept {
  if (std::string_view(format).starts_with(kRefused)) {
    static_cast<Handler*>(handler)->count(va_arg(arguments, unsigned));
  } else if (std::string_view(format).starts_with(kAcceptFailed)) {
    static_cast<Handler*>(handler)->connections().accept_failed();
  }
}

HttpServer::Handler::Outcome HttpServer::Handler::answer(MHD_Connection* connection,
                                                         const RequestLine& line) {
  const unsigned in_flight = ++in_flight_;
  Intake intake{.request = {.method = line.method, .path = line.path}};
  intake.request.is_private = is_private(connection);
  MHD_get_connection_values_n(connection, MHD_HEADER_KIND, take_value, &intake);
  MHD_get_connection_values_n(connection, MHD_GET_ARGUMENT_KIND, take_value, &intake);
  if (intake.has_two_authorizations) intake.authorization = std::nullopt;
  std::optional<HttpResponse> rendered;
  if (line.is_resumed) rendered = renderings_.answer_to(connection);
  Admission admission = admit(connection, line, intake.authorization);
  if (admission.verdict == Verdict::waits) {
    --in_flight_;  // it is not under way; a later call begins again
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
    request.in_flight = make_room(connection, in_flight);
    request.is_memory_short = connections_.may_hold_too_much();
    if (rendered && routes_.refuses(request)) rendered = routes_.busy();
    if (!rendered) rendered = answer_or_pause(connection, request);
    if (!rendered) {
      --in_flight_;
      return Outcome::paused;
    }
    message = *std::move(rendered);
  }
  message.counted = message.counted && !request.is_private;
  message.access = std::move(admission.generation);
  return queue(connection, std::move(message), intake.timeout) ? Outcome::queued : Outcome::failed;
}

void HttpServer::Handler::open_tls(MHD_Connection* connection, HttpConnection& entry) const {
  const MHD_ConnectionInfo* info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
  std::shared_ptr<const TlsContext> context = access_->current()->tls;
  if (info == nullptr || context == nullptr) return;
  if (context->apply(static_cast<gnutls_session_int*>(info->tls_session))) entry.hold(std::move(context));
}

// nullopt: the request is paused until its page is rendered.
std::optional<HttpResponse> HttpServer::Handler::answer_or_pause(MHD_Connection* connection,
                                                                 const HttpRequest& request) {
  const Rendering rendering = routes_.rendering_of(request);
  if (rendering == Rendering::none) return ask_routes(request);
  return renderings_.answer(request, {connection, peer_key(connection), rendering}, kPausing);
}

// A refusal reveals nothing, so it needs no user.
Admission HttpServer::Handler::admit(MHD_Connection* connection, const RequestLine& line,
                                     std::optional<std::string_view> authorization) {
  if (access_ == nullptr || is_private(connection)) return {};
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
