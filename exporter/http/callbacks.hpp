#pragma once

#include <microhttpd.h>

#include <cstdarg>
#include <cstddef>

#include "exporter/http/handler.hpp"

namespace gpumeter {

/// What libmicrohttpd calls, on its own threads; `handler` is the HttpServer::Handler. No exception leaves.
///
/// It calls on_request() with the headers, and again after the body, of which there is none: a request that
/// announces one is answered at the first call, before a byte of it is read. (To answer all there would be
/// simpler, and would cost every scraper its connection: after an early answer the library closes.)
/// `*request` says how far it is: null or a Refusal from on_request_line(), the connection once it was seen,
/// the handler once answered.
struct HttpServer::Callbacks {
  static void on_connection(void* handler, MHD_Connection* connection, void** context,
                            MHD_ConnectionNotificationCode code) noexcept;
  /// Before the library reads arguments and headers; what it returns is the first `*request`.
  static void* on_request_line(void* handler, const char* uri, MHD_Connection* connection) noexcept;
  // NOLINTNEXTLINE(readability-function-size): the library's parameters
  static MHD_Result on_request(void* handler, MHD_Connection* connection, const char* path,
                               const char* method, const char* version, const char* body,
                               std::size_t* body_size, void** request) noexcept;
  static void on_completed(void* handler, MHD_Connection* connection, void** request,
                           MHD_RequestTerminationCode code) noexcept;
  /// The library's log, of which only its own refusals are of interest: they are counted.
  static void on_message(void* handler, const char* format, std::va_list arguments) noexcept;
};

}  // namespace gpumeter
