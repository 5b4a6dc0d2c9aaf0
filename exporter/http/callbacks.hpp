#pragma once

#include <gnutls/abstract.h>
#include <microhttpd.h>

#include <cstdarg>
#include <cstddef>

#include "exporter/http/handler.hpp"

namespace gpumeter {

/// The functions that libmicrohttpd calls on its own threads; `handler` is the HttpServer::Handler. No
/// exception escapes.
///
/// The library calls on_request() after the headers and again after the body, which is always empty. A
/// request that announces a body is answered at the first call, before a byte of the body is read. Other
/// requests are answered at the second call, because the library closes a connection after an early answer.
/// `*request` records the state of the request: null or a Refusal from on_request_line(), the connection
/// after the first call, the handler once it is answered.
struct HttpServer::Callbacks {
  static void on_connection(void* handler, MHD_Connection* connection, void** context,
                            MHD_ConnectionNotificationCode code) noexcept;
  /// Called in the handshake of a session that on_connection() has not prepared: the handshake fails.
  // NOLINTNEXTLINE(readability-function-size): the library's parameters
  static int on_missing_certificate(gnutls_session_t session, const gnutls_datum_t* issuers, int issuer_count,
                                    const gnutls_pk_algorithm_t* algorithms, int algorithm_count,
                                    gnutls_pcert_st** certificates, unsigned* certificate_count,
                                    gnutls_privkey_t* key) noexcept;
  /// Called before the library reads arguments and headers; the returned value is the initial `*request`.
  static void* on_request_line(void* handler, const char* uri, MHD_Connection* connection) noexcept;
  // NOLINTNEXTLINE(readability-function-size): the library's parameters
  static MHD_Result on_request(void* handler, MHD_Connection* connection, const char* path,
                               const char* method, const char* version, const char* body,
                               std::size_t* body_size, void** request) noexcept;
  static void on_completed(void* handler, MHD_Connection* connection, void** request,
                           MHD_RequestTerminationCode code) noexcept;
  /// The library's log. Two kinds of messages are used: its own refusals are counted, and an accept() that
  /// failed for lack of resources ends a connection.
  static void on_message(void* handler, const char* format, std::va_list arguments) noexcept;
};

}  // namespace gpumeter
