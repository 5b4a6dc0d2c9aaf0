#pragma once

#include <memory>
#include <string>

#include "base/result.hpp"
#include "exporter/client/access.hpp"

namespace gpumeter::top {

/// The address of a daemon.
struct Address {
  std::string url;   ///< without a path's last "/": "http://node17:10478"
  std::string host;  ///< for people: "node17", with the port if it is not gpumeter's; this machine's name for
                     ///< localhost
  std::string socket = {};  ///< path of a Unix socket; empty: TCP
};

/// What the daemon requires of its clients.
struct Access {
  std::string ca_file;  ///< authorities for https, PEM; empty: the system's
  Login login;
};

/// Reads a URL, HOST[:PORT], or unix:/PATH as in `web.listen`. A text without scheme is http, and its default
/// port is 10478. The Error says what is wrong.
Result<Address> parse_address(const std::string& text);

/// Makes GET requests to one daemon and keeps the connection. Time and size are bounded: 3 s to connect, 10 s
/// in all, 64 MiB. Proxies of the environment are not used, and redirections not followed. One thread at a
/// time.
class HttpClient {
 public:
  struct Answer {
    long status = 0;
    std::string body;
  };

  explicit HttpClient(Address address, const Access& access = {});
  ~HttpClient();
  HttpClient(HttpClient&&) noexcept;

  const Address& address() const noexcept;
  /// `path` begins with "/". The Error is libcurl's message.
  Result<Answer> get(const std::string& path);

 private:
  struct Session;
  std::unique_ptr<Session> session_;
};

}  // namespace gpumeter::top
