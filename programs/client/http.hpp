#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "base/login.hpp"
#include "base/result.hpp"
#include "base/vsock.hpp"

/// The HTTP client of the other programs, by libcurl. The daemon does not link it. A program
/// calls curl_global_init() before its first thread.
namespace gpumeter::client {

/// The address of a server, and what it requires of its clients.
struct Address {
  std::string url;   ///< without a path's last "/": "http://node17:10478"
  std::string host;  ///< for people: "node17", with the port if it is not gpumeter's; this machine's name
                     ///< for localhost
  std::string socket = {};                  ///< path of a Unix socket; empty: TCP or `machine`
  std::optional<sockaddr_vm> machine = {};  ///< a virtual machine, or the host of this one
  std::string ca_file = {};                 ///< authorities for https, PEM; empty: the system's
  Login login = {};
  std::string text = {};  ///< as it was given, for messages
};

/// Reads a URL, HOST[:PORT], or unix:/PATH, vsock:CID:PORT and :PORT as in `web.listen`. A text without
/// scheme is http, and its default port is 10478. The user is that of the file; empty: none. The Error names
/// the text or the file, and what is wrong with it.
Result<Address> parse_address(const std::string& text, const std::string& ca_file = {},
                              const std::string& login_file = {});

/// The bounds of one request.
struct Limits {
  std::chrono::milliseconds connect;
  std::chrono::milliseconds total;  ///< also for the connection
  std::size_t bytes;                ///< of the answer's body
};

/// Makes GET requests to one server and keeps the connection. Proxies of the environment are not used, and
/// redirections not followed. One thread at a time.
class HttpClient {
 public:
  struct Answer {
    long status = 0;
    std::string body;
  };

  HttpClient(Address address, const Limits& limits, const char* user_agent);
  ~HttpClient();
  HttpClient(HttpClient&&) noexcept;

  /// `path` begins with "/". The Error is libcurl's message.
  Result<Answer> get(const std::string& path);
  /// True if the last get() failed because no process listens there.
  bool was_refused() const noexcept;

 private:
  struct Session;
  std::unique_ptr<Session> session_;
};

}  // namespace gpumeter::client
