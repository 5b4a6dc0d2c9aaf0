#include "exporter/tls/loopback.hpp"

#include <utility>

#include "exporter/tls/handles.hpp"

namespace gpumeter {
namespace {

/// The only anonymous suites of GnuTLS with an elliptic key exchange have AES-CBC. P-256 serves libraries in
/// FIPS mode, which have no X25519.
constexpr const char* kPriority =
    "NONE:+VERS-TLS1.2:+ANON-ECDH:+AES-128-CBC:+SHA1:+COMP-NULL:+SIGN-ALL:+GROUP-X25519:+GROUP-SECP256R1";

using ServerCredentials = GnutlsPtr<gnutls_anon_server_credentials_t, gnutls_anon_free_server_credentials>;
using ClientCredentials = GnutlsPtr<gnutls_anon_client_credentials_t, gnutls_anon_free_client_credentials>;

bool is_pending(int code) { return code == GNUTLS_E_AGAIN || code == GNUTLS_E_INTERRUPTED; }

/// Repeats a call of GnuTLS until it has a result.
template <class Call>
Result<std::size_t> complete(const TlsLoopbackClient::Wait& wait, Call call) {
  while (true) {
    const ssize_t result = call();
    if (result >= 0) return static_cast<std::size_t>(result);
    if (!is_pending(static_cast<int>(result))) return gnutls_error(static_cast<int>(result));
    if (!wait()) return Error("no answer before the deadline");
  }
}

}  // namespace

struct TlsLoopback::Parts {
  GnutlsPriority priority;
  ServerCredentials server;
  ClientCredentials client;
};

TlsLoopback::TlsLoopback(std::unique_ptr<const Parts> parts) : parts_(std::move(parts)) {}
TlsLoopback::~TlsLoopback() = default;

Result<std::unique_ptr<const TlsLoopback>> TlsLoopback::make() {
  auto parts = std::make_unique<Parts>();
  gnutls_priority_t priority = nullptr;
  if (const int code = gnutls_priority_init(&priority, kPriority, nullptr); code < 0)
    return gnutls_error(code);
  parts->priority.reset(priority);
  gnutls_anon_server_credentials_t server = nullptr;
  if (const int code = gnutls_anon_allocate_server_credentials(&server); code < 0) return gnutls_error(code);
  parts->server.reset(server);
  gnutls_anon_client_credentials_t client = nullptr;
  if (const int code = gnutls_anon_allocate_client_credentials(&client); code < 0) return gnutls_error(code);
  parts->client.reset(client);
  return std::unique_ptr<const TlsLoopback>(new TlsLoopback(std::move(parts)));
}

bool TlsLoopback::apply(gnutls_session_int* session) const noexcept {
  return gnutls_priority_set(session, parts_->priority.get()) >= 0 &&
         gnutls_credentials_set(session, GNUTLS_CRD_ANON, parts_->server.get()) >= 0;
}

struct TlsLoopbackClient::Session {
  GnutlsSession handle;
};

TlsLoopbackClient::TlsLoopbackClient(std::unique_ptr<Session> session) : session_(std::move(session)) {}
TlsLoopbackClient::~TlsLoopbackClient() = default;

Result<std::unique_ptr<TlsLoopbackClient>> TlsLoopbackClient::begin(const TlsLoopback& loopback,
                                                                    int descriptor) {
  gnutls_session_t raw = nullptr;
  if (const int code = gnutls_init(&raw, GNUTLS_CLIENT | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL); code < 0) {
    return gnutls_error(code);
  }
  auto session = std::make_unique<Session>(GnutlsSession(raw));
  const TlsLoopback::Parts& parts = *loopback.parts_;
  if (const int code = gnutls_priority_set(raw, parts.priority.get()); code < 0) return gnutls_error(code);
  if (const int code = gnutls_credentials_set(raw, GNUTLS_CRD_ANON, parts.client.get()); code < 0) {
    return gnutls_error(code);
  }
  gnutls_transport_set_int(raw, descriptor);
  if (const int code = gnutls_handshake(raw); code < 0 && !is_pending(code)) return gnutls_error(code);
  return std::unique_ptr<TlsLoopbackClient>(new TlsLoopbackClient(std::move(session)));
}

Result<std::string> TlsLoopbackClient::exchange(std::string_view request, std::size_t size,
                                                const Wait& wait) {
  const gnutls_session_t handle = session_->handle.get();
  const auto shake = [&]() -> ssize_t { return gnutls_handshake(handle); };
  if (const Result<std::size_t> done = complete(wait, shake); !done)
    return done.error().with("TLS handshake");
  const auto send = [&] { return gnutls_record_send(handle, request.data(), request.size()); };
  if (const Result<std::size_t> sent = complete(wait, send); !sent) return sent.error();
  std::string answer(size, '\0');
  std::size_t have = 0;
  while (have < size) {
    const auto receive = [&] { return gnutls_record_recv(handle, answer.data() + have, size - have); };
    const Result<std::size_t> got = complete(wait, receive);
    if (!got) return got.error();
    if (*got == 0) break;
    have += *got;
  }
  answer.resize(have);
  return answer;
}

}  // namespace gpumeter
