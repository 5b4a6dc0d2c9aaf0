#pragma once

#include <gnutls/gnutls.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <string>
#include <thread>

#include "base/descriptor.hpp"
#include "exporter/tls/context.hpp"
#include "tests/unit/exporter/tls/pki.hpp"

namespace gpumeter {

struct TestClient {
  const pki::Pair* pair = nullptr;  ///< its certificate, if any
  std::string version = "TLS1.3";
  std::string more = "";  ///< appended to the priority string
};

/// A handshake of the client with a server's session of `context`, over a socket pair. Then the server sends
/// a byte: in TLS 1.3 a client learns only then that it was rejected. Returns the client's error, or nothing.
inline std::string shake_hands(const TlsContext& context, const TestClient& client) {
  int ends[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  const Descriptor client_end(ends[0]);
  Descriptor server_end(ends[1]);
  std::thread server([&context, descriptor = std::move(server_end)] {
    gnutls_session_t raw = nullptr;
    gnutls_init(&raw, GNUTLS_SERVER | GNUTLS_NO_SIGNAL);
    const GnutlsSession session(raw);
    EXPECT_TRUE(context.apply(raw));
    gnutls_transport_set_int(raw, descriptor.number());
    if (gnutls_handshake(raw) == 0) gnutls_record_send(raw, "x", 1);
    // Reads what the client still sends, so that its write does not fail before it reads the alert.
    char rest[4096];
    while (recv(descriptor.number(), rest, sizeof rest, 0) > 0) {
    }
  });
  gnutls_session_t raw = nullptr;
  gnutls_init(&raw, GNUTLS_CLIENT | GNUTLS_FORCE_CLIENT_CERT | GNUTLS_NO_SIGNAL);
  gnutls_certificate_credentials_t raw_credentials = nullptr;
  gnutls_certificate_allocate_credentials(&raw_credentials);
  const GnutlsCredentials credentials(raw_credentials);
  const GnutlsSession session(raw);
  if (client.pair != nullptr) {
    const gnutls_datum_t certificate = pki::datum(client.pair->certificate);
    const gnutls_datum_t key = pki::datum(client.pair->key);
    EXPECT_EQ(gnutls_certificate_set_x509_key_mem(raw_credentials, &certificate, &key, GNUTLS_X509_FMT_PEM),
              0);
  }
  gnutls_credentials_set(raw, GNUTLS_CRD_CERTIFICATE, raw_credentials);
  const std::string priority = "NORMAL:-VERS-ALL:+VERS-" + client.version + client.more;
  EXPECT_EQ(gnutls_priority_set_direct(raw, priority.c_str(), nullptr), 0) << priority;
  gnutls_transport_set_int(raw, client_end.number());
  long code = gnutls_handshake(raw);
  char byte = 0;
  if (code == 0) code = gnutls_record_recv(raw, &byte, 1);
  shutdown(client_end.number(), SHUT_RDWR);
  server.join();
  if (code == 1) return "";
  if (code == GNUTLS_E_FATAL_ALERT_RECEIVED) {
    return std::string("alert: ") + gnutls_alert_get_name(gnutls_alert_get(raw));
  }
  return code == 0 ? "end of file" : gnutls_strerror(static_cast<int>(code));
}

}  // namespace gpumeter
