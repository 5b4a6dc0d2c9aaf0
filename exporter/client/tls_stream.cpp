#include "exporter/client/tls_stream.hpp"

#include <arpa/inet.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

namespace gpumeter {

bool is_ready(const Descriptor& descriptor, short events, std::chrono::steady_clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  pollfd poller{descriptor.number(), events, 0};
  return poll(&poller, 1, static_cast<int>(std::max(left.count(), decltype(left.count()){0}))) == 1;
}

struct TlsStream::Parts {
  explicit Parts(const Descriptor& of_socket) : socket(of_socket) {}
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;
  ~Parts() {
    if (session != nullptr) gnutls_deinit(session);
    if (trust != nullptr) gnutls_certificate_free_credentials(trust);
  }

  /// Repeats a call until it has a result that is not "try again"; GNUTLS_E_TIMEDOUT after the deadline.
  template <class Call>
  std::invoke_result_t<Call> result_of(Call call, Deadline deadline) const {
    while (true) {
      const std::invoke_result_t<Call> result = call();
      if (result != GNUTLS_E_AGAIN && result != GNUTLS_E_INTERRUPTED) return result;
      const short events = gnutls_record_get_direction(session) == 0 ? POLLIN : POLLOUT;
      if (!is_ready(socket, events, deadline)) return GNUTLS_E_TIMEDOUT;
    }
  }

  const Descriptor& socket;
  gnutls_session_t session = nullptr;
  gnutls_certificate_credentials_t trust = nullptr;
};

namespace {

Error gnutls_error(ssize_t code) {
  return Error(std::string("TLS: ") + gnutls_strerror(static_cast<int>(code)));
}

Error certificate_error(gnutls_session_t session) {
  gnutls_datum_t text{};
  const unsigned status = gnutls_session_get_verify_cert_status(session);
  if (gnutls_certificate_verification_status_print(status, GNUTLS_CRT_X509, &text, 0) < 0) {
    return gnutls_error(GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR);
  }
  std::string sentence(reinterpret_cast<const char*>(text.data), text.size);
  gnutls_free(text.data);
  while (sentence.ends_with(' ')) sentence.pop_back();
  return Error("TLS: " + sentence);
}

bool is_number(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> address{};
  return inet_pton(AF_INET, host.c_str(), address.data()) == 1 ||
         inet_pton(AF_INET6, host.c_str(), address.data()) == 1;
}

/// Returns the number of authorities, or a negative code.
int load_trust(gnutls_certificate_credentials_t trust, const std::string& ca_file) {
  if (ca_file.empty()) return gnutls_certificate_set_x509_system_trust(trust);
  return gnutls_certificate_set_x509_trust_file(trust, ca_file.c_str(), GNUTLS_X509_FMT_PEM);
}

}  // namespace

TlsStream::TlsStream(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
TlsStream::~TlsStream() = default;

Result<std::unique_ptr<TlsStream>> TlsStream::open(const Descriptor& socket, const std::string& host,
                                                   const std::string& ca_file, Deadline deadline) {
  auto parts = std::make_unique<Parts>(socket);
  int code = gnutls_certificate_allocate_credentials(&parts->trust);
  if (code < 0) return gnutls_error(code);
  const int authorities = load_trust(parts->trust, ca_file);
  if (authorities < 0) return gnutls_error(authorities).with(ca_file);
  if (authorities == 0 && !ca_file.empty()) return Error(ca_file + " has no certificate");
  code = gnutls_init(&parts->session, GNUTLS_CLIENT | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL);
  if (code < 0) return gnutls_error(code);
  const gnutls_session_t session = parts->session;
  gnutls_set_default_priority(session);
  gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, parts->trust);
  if (!is_number(host)) gnutls_server_name_set(session, GNUTLS_NAME_DNS, host.data(), host.size());
  gnutls_session_set_verify_cert(session, host.c_str(), 0);
  gnutls_transport_set_int(session, socket.number());
  do {
    code = parts->result_of([session] { return gnutls_handshake(session); }, deadline);
  } while (code < 0 && code != GNUTLS_E_TIMEDOUT && gnutls_error_is_fatal(code) == 0);
  if (code == GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR) return certificate_error(session);
  if (code < 0) return gnutls_error(code);
  return std::unique_ptr<TlsStream>(new TlsStream(std::move(parts)));
}

Result<Done> TlsStream::send(std::string_view text, Deadline deadline) {
  while (!text.empty()) {
    const auto sent = parts_->result_of(
        [&] { return gnutls_record_send(parts_->session, text.data(), text.size()); }, deadline);
    if (sent < 0) return gnutls_error(sent);
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
  return Done{};
}

// Many servers close without close_notify; the Content-Length tells whether the answer is complete.
Result<std::size_t> TlsStream::receive(char* bytes, std::size_t size, Deadline deadline) {
  while (true) {
    const auto got =
        parts_->result_of([&] { return gnutls_record_recv(parts_->session, bytes, size); }, deadline);
    if (got == GNUTLS_E_PREMATURE_TERMINATION) return std::size_t{0};
    if (got == GNUTLS_E_TIMEDOUT) return Error("no complete answer in time");
    if (got >= 0) return static_cast<std::size_t>(got);
    if (gnutls_error_is_fatal(static_cast<int>(got)) != 0) return gnutls_error(got);
  }
}

}  // namespace gpumeter
