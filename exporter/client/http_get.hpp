#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

#include "base/login.hpp"
#include "base/result.hpp"

/// A small HTTP client for commands that ask a running daemon. Blocks; any thread.
namespace gpumeter {

/// The place of an HTTP server.
struct HttpAddress {
  std::string host;  ///< a name or a number, without brackets
  std::string port;
  std::string socket = {};  ///< path of a Unix socket; empty: TCP
  bool is_tls = false;
};

/// Parses "http://host:port" and "https://host:port", with or without "http://" and a closing "/", and the
/// addresses of `web.listen`:
/// ":10478" and "0.0.0.0:10478" are reached on the machine itself, "unix:/path" through its socket.
Result<HttpAddress> parse_http_address(std::string_view text);

struct HttpAnswer {
  bool is_refused = false;  ///< no process listens there; all other fields are empty then
  unsigned status = 0;
  std::string body;
};

/// Parses all bytes that a server sent until it closed the connection. Returns an Error if they are not HTTP
/// or end before the Content-Length or the last chunk.
Result<HttpAnswer> parse_http_answer(std::string_view text);

/// What a request needs in addition to its address.
struct HttpAccess {
  std::string ca_file;  ///< authorities for TLS, PEM; empty: the system's
  Login login;
};

/// The value of the header Authorization (RFC 7617): "Basic " and "user:password" in base64.
std::string basic_authorization(const Login& login);

/// Requests a path. Returns an Error if the answer is not complete by `deadline`, is longer than
/// `most_bytes`, or is not HTTP. The lookup of names other than localhost is not limited by `deadline`.
Result<HttpAnswer> http_get(const HttpAddress& address, const std::string& path,
                            std::chrono::steady_clock::time_point deadline, std::size_t most_bytes,
                            const HttpAccess& access = {});

}  // namespace gpumeter
