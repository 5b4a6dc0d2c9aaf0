#include "exporter/http/callbacks.hpp"

#include <pthread.h>

#include <algorithm>
#include <cstring>
#include <string_view>

namespace gpumeter {
namespace {

/// Start of the log message for each answer that the library sends by itself; the status is its first
/// argument.
constexpr std::string_view kRefused = "Error processing request (HTTP response code is %u";

/// Start of the log message after an accept() that failed for lack of a descriptor or of memory.
constexpr std::string_view kAcceptFailed = "Hit process or system resource limit";

/// A request's context while it waits for the check of a password; recognised by its address.
constexpr char kPaused = 0;

const sockaddr* peer_of(MHD_Connection* connection) {
  const MHD_ConnectionInfo* peer = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
  return peer == nullptr ? nullptr : peer->client_addr;
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

}  // namespace

void HttpServer::Callbacks::on_connection(void* handler, MHD_Connection* connection, void** context,
                                          MHD_ConnectionNotificationCode code) noexcept {
  // The library creates its threads; each one is named at its first connection.
  thread_local const int named = pthread_setname_np(pthread_self(), "http");
  static_cast<void>(named);
  HttpConnections& connections = static_cast<Handler*>(handler)->connections();
  if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
    connections.closed(static_cast<HttpConnection*>(*context));
    return;
  }
  try {
    const sockaddr* peer = peer_of(connection);
    if (Standstill::is_asked_by(peer)) static_cast<Handler*>(handler)->standstill().hold();
    const int descriptor = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    const UserOwners* const owners = static_cast<Handler*>(handler)->owners();
    HttpConnection* const entry = connections.opened(descriptor, Peer::of(peer, descriptor, owners));
    *context = entry;
    const TlsSessions& tls = static_cast<Handler*>(handler)->tls();
    if (tls.is_on()) tls.open(connection, peer, *entry);
  } catch (...) {  // out of memory: plain HTTP is served without a deadline; a TLS handshake fails
  }
}

// NOLINTNEXTLINE(readability-function-size): the library's parameters
int HttpServer::Callbacks::on_missing_certificate(gnutls_session_t, const gnutls_datum_t*, int,
                                                  const gnutls_pk_algorithm_t*, int, gnutls_pcert_st**,
                                                  unsigned*, gnutls_privkey_t*) noexcept {
  return -1;
}

void* HttpServer::Callbacks::on_request_line(void*, const char* uri, MHD_Connection* connection) noexcept {
  const Refusal* refusal = Handler::refusal_of(uri);
  // libmicrohttpd 0.9.75 sends the status line twice if a Content-Length is not a number. The library reads
  // only the first such header, which is this one; the handler reads the client's.
  const MHD_Result added = MHD_set_connection_value(connection, MHD_HEADER_KIND, "Content-Length", kNoBody);
  if (added != MHD_YES) refusal = &Handler::kTooLong;
  if (refusal != nullptr && uri != nullptr) cut_arguments(uri);
  return const_cast<Refusal*>(refusal);
}

// NOLINTNEXTLINE(readability-function-size): the library's parameters
MHD_Result HttpServer::Callbacks::on_request(void* handler, MHD_Connection* connection, const char* path,
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
    if (refusal == nullptr && !headers.announce_body && Handler::is_method_known(method)) return MHD_YES;
  }
  HttpConnection* const entry = Handler::entry_of(connection);
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

void HttpServer::Callbacks::on_completed(void* handler, MHD_Connection* connection, void** request,
                                         MHD_RequestTerminationCode) noexcept {
  if (*request == handler) {
    static_cast<Handler*>(handler)->completed();
    if (HttpConnection* entry = Handler::entry_of(connection); entry != nullptr) entry->answered();
  } else if (*request == &kPaused) {
    static_cast<Handler*>(handler)->forget(connection);
  }
  *request = nullptr;
}

void HttpServer::Callbacks::on_message(void* handler, const char* format, std::va_list arguments) noexcept {
  if (std::string_view(format).starts_with(kRefused)) {
    static_cast<Handler*>(handler)->count(va_arg(arguments, unsigned));
  } else if (std::string_view(format).starts_with(kAcceptFailed)) {
    static_cast<Handler*>(handler)->connections().accept_failed();
  }
}

}  // namespace gpumeter
