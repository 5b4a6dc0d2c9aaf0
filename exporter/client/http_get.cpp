#include "exporter/client/http_get.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/descriptor.hpp"
#include "base/text.hpp"

namespace gpumeter {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr unsigned kDefaultPort = 10478;

/// True if the descriptor is ready for `events` (poll(2)) before the deadline.
bool is_ready(const Descriptor& descriptor, short events, SteadyClock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - SteadyClock::now());
  pollfd poller{descriptor.number(), events, 0};
  return poll(&poller, 1, static_cast<int>(std::max(left.count(), decltype(left.count()){0}))) == 1;
}

struct FreeAddresses {
  void operator()(addrinfo* list) const noexcept { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Error system_error(int error) { return Error(std::generic_category().message(error)); }

Result<Addresses> look_up(const std::string& host, const std::string& port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &list);
  if (error != 0) return Error(host + ": " + gai_strerror(error));
  return Addresses(list);
}

/// Returns 0 or the error number.
int connect_within(const Descriptor& socket, const addrinfo& address, SteadyClock::time_point deadline) {
  if (connect(socket.number(), address.ai_addr, address.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  if (!is_ready(socket, POLLOUT, deadline)) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(socket.number(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

/// Returns the connection, or the error of the last address; ECONNREFUSED only if all refuse.
std::pair<Descriptor, int> connect_any(const addrinfo* list, SteadyClock::time_point deadline) {
  int error = ECONNREFUSED;
  for (const addrinfo* each = list; each != nullptr; each = each->ai_next) {
    Descriptor opened(socket(each->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!opened) continue;  // a family that this machine does not have
    const int result = connect_within(opened, *each, deadline);
    if (result == 0) return {std::move(opened), 0};
    const bool lacks_family = result == EADDRNOTAVAIL || result == ENETUNREACH;
    if (result != ECONNREFUSED && !lacks_family) error = result;
  }
  return {Descriptor(), error};
}

/// Returns the connection, or the error; ECONNREFUSED also if the file is missing.
std::pair<Descriptor, int> connect_to(const std::string& path, SteadyClock::time_point deadline) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  path.copy(name.sun_path, sizeof name.sun_path - 1);
  addrinfo address{};
  address.ai_addr = reinterpret_cast<sockaddr*>(&name);
  address.ai_addrlen = sizeof name;
  Descriptor opened(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int error = opened ? connect_within(opened, address, deadline) : errno;
  return {std::move(opened), error == ENOENT ? ECONNREFUSED : error};
}

Result<std::pair<Descriptor, int>> connect_to(const HttpAddress& address, SteadyClock::time_point deadline) {
  if (!address.socket.empty()) return connect_to(address.socket, deadline);
  const Result<Addresses> addresses = look_up(address.host, address.port);
  if (!addresses) return addresses.error();
  return connect_any(addresses->get(), deadline);
}

bool is_number(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> address{};
  return inet_pton(AF_INET, host.c_str(), address.data()) == 1 ||
         inet_pton(AF_INET6, host.c_str(), address.data()) == 1;
}

Error tls_error(ssize_t code) {
  return Error(std::string("TLS: ") + gnutls_strerror(static_cast<int>(code)));
}

/// A connection, with TLS after start_tls().
class Stream {
 public:
  Stream(const Descriptor& socket, SteadyClock::time_point deadline) : socket_(socket), deadline_(deadline) {}
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() {
    if (session_ != nullptr) gnutls_deinit(session_);
    if (trust_ != nullptr) gnutls_certificate_free_credentials(trust_);
  }

  /// Makes the handshake. The server's certificate must be for `host`, a name or a number, and from an
  /// authority of `ca_file`; without one, of the system's. The Error says what is wrong with it.
  Result<Done> start_tls(const std::string& host, const std::string& ca_file) {
    if (const int code = gnutls_certificate_allocate_credentials(&trust_); code < 0) return tls_error(code);
    const int authorities = ca_file.empty() ? gnutls_certificate_set_x509_system_trust(trust_)
                                            : gnutls_certificate_set_x509_trust_file(trust_, ca_file.c_str(),
                                                                                     GNUTLS_X509_FMT_PEM);
    if (authorities < 0) return tls_error(authorities).with(ca_file);
    if (authorities == 0 && !ca_file.empty()) return Error(ca_file + " has no certificate");
    int code = gnutls_init(&session_, GNUTLS_CLIENT | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL);
    if (code < 0) return tls_error(code);
    gnutls_set_default_priority(session_);
    gnutls_credentials_set(session_, GNUTLS_CRD_CERTIFICATE, trust_);
    if (!is_number(host)) gnutls_server_name_set(session_, GNUTLS_NAME_DNS, host.data(), host.size());
    gnutls_session_set_verify_cert(session_, host.c_str(), 0);
    gnutls_transport_set_int(session_, socket_.number());
    do {
      code = result_of([this] { return gnutls_handshake(session_); });
    } while (code < 0 && code != GNUTLS_E_TIMEDOUT && gnutls_error_is_fatal(code) == 0);
    if (code == GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR) return certificate_error();
    if (code < 0) return tls_error(code);
    return Done{};
  }

  Result<Done> send(std::string_view text) {
    while (!text.empty()) {
      const Result<std::size_t> sent = session_ != nullptr ? send_sealed(text) : send_plain(text);
      if (!sent) return sent.error();
      text.remove_prefix(*sent);
    }
    return Done{};
  }

  /// All bytes until the server closes.
  Result<std::string> receive_all(std::size_t most) {
    std::string text;
    std::vector<char> piece(65536);
    while (text.size() <= most) {
      const Result<std::size_t> got = session_ != nullptr ? receive_sealed(piece) : receive_plain(piece);
      if (!got) return got.error();
      if (*got == 0) return text;
      text.append(piece.data(), *got);
    }
    return Error("the answer has more than " + std::to_string(most) + " bytes");
  }

 private:
  /// Repeats a call until it has a result that is not "try again"; GNUTLS_E_TIMEDOUT after the deadline.
  template <class Call>
  std::invoke_result_t<Call> result_of(Call call) const {
    while (true) {
      const std::invoke_result_t<Call> result = call();
      if (result != GNUTLS_E_AGAIN && result != GNUTLS_E_INTERRUPTED) return result;
      const short events = gnutls_record_get_direction(session_) == 0 ? POLLIN : POLLOUT;
      if (!is_ready(socket_, events, deadline_)) return GNUTLS_E_TIMEDOUT;
    }
  }

  Error certificate_error() const {
    gnutls_datum_t text{};
    const unsigned status = gnutls_session_get_verify_cert_status(session_);
    if (gnutls_certificate_verification_status_print(status, GNUTLS_CRT_X509, &text, 0) < 0)
      return tls_error(GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR);
    std::string sentence(reinterpret_cast<const char*>(text.data), text.size);
    gnutls_free(text.data);
    while (sentence.ends_with(' ')) sentence.pop_back();
    return Error("TLS: " + sentence);
  }

  Result<std::size_t> send_sealed(std::string_view text) const {
    const auto sent = result_of([&] { return gnutls_record_send(session_, text.data(), text.size()); });
    if (sent < 0) return tls_error(sent);
    return static_cast<std::size_t>(sent);
  }

  Result<std::size_t> send_plain(std::string_view text) const {
    if (!is_ready(socket_, POLLOUT, deadline_)) return Error("no answer in time");
    const ssize_t sent = ::send(socket_.number(), text.data(), text.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) return system_error(errno);
    return static_cast<std::size_t>(std::max<ssize_t>(sent, 0));
  }

  // Many servers close without close_notify; the Content-Length tells whether the answer is complete.
  Result<std::size_t> receive_sealed(std::vector<char>& piece) const {
    while (true) {
      const auto got = result_of([&] { return gnutls_record_recv(session_, piece.data(), piece.size()); });
      if (got == GNUTLS_E_PREMATURE_TERMINATION) return std::size_t{0};
      if (got == GNUTLS_E_TIMEDOUT) return Error("no complete answer in time");
      if (got >= 0) return static_cast<std::size_t>(got);
      if (gnutls_error_is_fatal(static_cast<int>(got)) != 0) return tls_error(got);
    }
  }

  Result<std::size_t> receive_plain(std::vector<char>& piece) const {
    while (is_ready(socket_, POLLIN, deadline_)) {
      const ssize_t got = recv(socket_.number(), piece.data(), piece.size(), 0);
      if (got >= 0) return static_cast<std::size_t>(got);
      if (errno != EAGAIN) return system_error(errno);
    }
    return Error("no complete answer in time");
  }

  const Descriptor& socket_;
  const SteadyClock::time_point deadline_;
  gnutls_session_t session_ = nullptr;
  gnutls_certificate_credentials_t trust_ = nullptr;
};

std::string request_of(const HttpAddress& address, const std::string& path, const Login& login) {
  std::string request = "GET " + path + " HTTP/1.0\r\nHost: " + address.host +
                        "\r\nUser-Agent: gpumeter\r\nConnection: close\r\n";
  if (!login.user.empty()) request += "Authorization: " + basic_authorization(login) + "\r\n";
  return request + "\r\n";
}

/// Returns the value of the header, in lower case; `name` is "\r\nname:". Empty if there is none.
std::string header_in(std::string_view headers, std::string_view name) {
  std::string lower(headers);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  const std::size_t at = lower.find(name);
  if (at == std::string::npos) return {};
  std::string_view value = std::string_view(lower).substr(at + name.size());
  return std::string(trimmed(take_until(value, '\r')));
}

/// Joins the chunks of a body (RFC 9112, 7.1); nullopt if it ends before its last chunk.
std::optional<std::string> joined(std::string_view body) {
  constexpr int kHexadecimal = 16;
  std::string whole;
  while (true) {
    std::string_view line = take_until(body, '\n');
    const auto size = parse_number<std::size_t>(trimmed(take_until(line, ';')), kHexadecimal);
    if (!size || *size > body.size()) return std::nullopt;
    if (*size == 0) return whole;
    whole += body.substr(0, *size);
    body.remove_prefix(*size);
    if (!body.starts_with("\r\n")) return std::nullopt;
    body.remove_prefix(2);
  }
}

}  // namespace

Result<HttpAddress> parse_http_address(std::string_view text) {
  constexpr std::string_view kScheme = "http://";
  const std::string whole(text);
  constexpr std::string_view kUnix = "unix:/";
  constexpr std::size_t kLongestPath = sizeof sockaddr_un{}.sun_path - 1;
  if (text.starts_with(kUnix) && text.size() - kUnix.size() < kLongestPath) {
    return HttpAddress{"localhost", "", std::string(text.substr(kUnix.size() - 1))};
  }
  constexpr std::string_view kTlsScheme = "https://";
  const bool is_tls = text.starts_with(kTlsScheme);
  if (is_tls || text.starts_with(kScheme)) text.remove_prefix(is_tls ? kTlsScheme.size() : kScheme.size());
  if (text.ends_with('/')) text.remove_suffix(1);
  const std::size_t colon = text.rfind(':');
  const bool has_port = colon != std::string_view::npos && text.find(']', colon) == std::string_view::npos;
  std::string_view host = has_port ? text.substr(0, colon) : text;
  const std::string port(has_port ? text.substr(colon + 1) : std::to_string(kDefaultPort));
  const bool is_bracketed = host.starts_with('[') && host.ends_with(']');
  if (is_bracketed) host = host.substr(1, host.size() - 2);
  const bool is_wrong = host.find_first_of("/?#@[] ") != std::string_view::npos ||
                        (!is_bracketed && host.find(':') != std::string_view::npos) ||
                        !parse_number<std::uint16_t>(port);
  if (is_wrong) return Error(whole + ": must be http://host:port or https://host:port");
  if (host.empty() || host == "0.0.0.0" || host == "::") host = "localhost";
  return HttpAddress{std::string(host), port, {}, is_tls};
}

std::string basic_authorization(const Login& login) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const std::string plain = login.user + ":" + login.password;
  std::string coded = "Basic ";
  for (std::size_t at = 0; at < plain.size(); at += 3) {
    const std::size_t count = std::min<std::size_t>(3, plain.size() - at);
    unsigned bits = 0;  // 24, of three bytes
    for (std::size_t i = 0; i < 3; ++i) {
      bits = (bits << 8U) | (i < count ? static_cast<unsigned char>(plain[at + i]) : 0U);
    }
    for (std::size_t i = 0; i < 4; ++i) {
      coded += i <= count ? kDigits[(bits >> (18U - 6U * i)) & 0x3FU] : '=';
    }
  }
  return coded;
}

// gpumeter answers with a Content-Length. HTTP/1.0 in the request rules out a chunked answer, but some
// servers send one (uvicorn with httptools, to applications that know no length).
Result<HttpAnswer> parse_http_answer(std::string_view text) {
  const std::size_t end = text.find("\r\n\r\n");
  constexpr std::string_view kVersion = "HTTP/1.";
  if (!text.starts_with(kVersion) || end == std::string_view::npos) return Error("the answer is not HTTP");
  std::string_view line = text.substr(0, text.find("\r\n"));
  take_until(line, ' ');
  const std::optional<unsigned> status = parse_number<unsigned>(take_until(line, ' '));
  if (!status) return Error("the answer is not HTTP");
  const std::string_view headers = text.substr(0, end + 2);
  const std::string_view body = text.substr(end + 4);
  const bool is_chunked = header_in(headers, "\r\ntransfer-encoding:").ends_with("chunked");
  std::optional<std::string> whole = is_chunked ? joined(body) : std::optional(std::string(body));
  const auto length = parse_number<std::size_t>(header_in(headers, "\r\ncontent-length:"));
  const bool is_cut = !is_chunked && body.size() < length.value_or(0);
  if (!whole || is_cut) return Error("the answer ends too early");
  return HttpAnswer{false, *status, *std::move(whole)};
}

Result<HttpAnswer> http_get(const HttpAddress& address, const std::string& path,
                            SteadyClock::time_point deadline, std::size_t most_bytes,
                            const HttpAccess& access) {
  const auto connected = connect_to(address, deadline);
  if (!connected) return connected.error();
  const auto& [connection, error] = *connected;
  if (error == ECONNREFUSED) return HttpAnswer{true, 0, {}};
  if (error != 0) return system_error(error);
  Stream stream(connection, deadline);
  if (address.is_tls) {
    if (Result<Done> begun = stream.start_tls(address.host, access.ca_file); !begun) return begun.error();
  }
  if (Result<Done> sent = stream.send(request_of(address, path, access.login)); !sent) return sent.error();
  const Result<std::string> answer = stream.receive_all(most_bytes);
  if (!answer) return answer.error();
  return parse_http_answer(*answer);
}

}  // namespace gpumeter
