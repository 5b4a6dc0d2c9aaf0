#include "exporter/tls/client_policy.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <string_view>

namespace gpumeter {
namespace {

/// The text of an address of 4 or 16 bytes; IPv4 in IPv6 as IPv4, as Go writes it.
std::string ip_text(std::string_view bytes) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  in6_addr address{};
  if (bytes.size() == sizeof address) {
    std::memcpy(&address, bytes.data(), sizeof address);
    if (IN6_IS_ADDR_V4MAPPED(&address)) return ip_text(bytes.substr(bytes.size() - sizeof(in_addr)));
  } else if (bytes.size() != sizeof(in_addr)) {
    return {};
  }
  const int family = bytes.size() == sizeof(in_addr) ? AF_INET : AF_INET6;
  return inet_ntop(family, bytes.data(), text.data(), text.size()) == nullptr ? "" : text.data();
}

bool must_verify(ClientAuth auth) {
  return auth == ClientAuth::verify_if_given || auth == ClientAuth::require_verified;
}

bool must_have(ClientAuth auth) {
  return auth == ClientAuth::require_any || auth == ClientAuth::require_verified;
}

/// Go requires the same purpose of a client's certificate.
bool has_trusted_issuer(gnutls_session_t session) {
  char purpose[] = GNUTLS_KP_TLS_WWW_CLIENT;
  gnutls_typed_vdata_st wanted{GNUTLS_DT_KEY_PURPOSE_OID, reinterpret_cast<unsigned char*>(purpose), 0};
  unsigned status = GNUTLS_CERT_INVALID;
  return gnutls_certificate_verify_peers(session, &wanted, 1, &status) == GNUTLS_E_SUCCESS && status == 0;
}

}  // namespace

std::vector<std::string> subject_alt_names(const gnutls_datum_t& der) {
  std::vector<std::string> names;
  gnutls_x509_crt_t raw = nullptr;
  if (gnutls_x509_crt_init(&raw) < 0) return names;
  const GnutlsCertificate certificate(raw);
  if (gnutls_x509_crt_import(raw, &der, GNUTLS_X509_FMT_DER) < 0) return names;
  std::string name(der.size, '\0');  // no name is longer than its certificate
  for (unsigned i = 0;; ++i) {
    std::size_t size = name.size();
    const int type = gnutls_x509_crt_get_subject_alt_name(raw, i, name.data(), &size, nullptr);
    if (type < 0) return names;
    const std::string_view value = std::string_view(name).substr(0, size);
    if (type == GNUTLS_SAN_IPADDRESS) names.push_back(ip_text(value));
    if (type == GNUTLS_SAN_DNSNAME || type == GNUTLS_SAN_RFC822NAME || type == GNUTLS_SAN_URI) {
      names.emplace_back(value);
    }
  }
}

void ClientPolicy::apply(gnutls_session_t session) const noexcept {
  // A missing certificate is rejected in verify(): GnuTLS alone would send no alert.
  const bool is_asked = auth_ != ClientAuth::none;
  gnutls_certificate_server_set_request(session, is_asked ? GNUTLS_CERT_REQUEST : GNUTLS_CERT_IGNORE);
  if (!is_asked) return;
  gnutls_session_set_ptr(session, const_cast<ClientPolicy*>(this));
  gnutls_session_set_verify_function(session, verify);
}

// libmicrohttpd closes the socket without an alert, so the client would see only an end of file. The alerts
// are those of Go's servers.
int ClientPolicy::verify(gnutls_session_t session) noexcept {
  try {
    if (static_cast<const ClientPolicy*>(gnutls_session_get_ptr(session))->admits(session)) return 0;
  } catch (...) {  // out of memory: not admitted
  }
  const bool is_missing = gnutls_certificate_get_peers(session, nullptr) == nullptr;
  const bool has_alert = gnutls_protocol_get_version(session) >= GNUTLS_TLS1_3;
  gnutls_alert_send(session, GNUTLS_AL_FATAL,
                    is_missing && has_alert ? GNUTLS_A_CERTIFICATE_REQUIRED : GNUTLS_A_BAD_CERTIFICATE);
  return GNUTLS_E_CERTIFICATE_ERROR;
}

// A list of names admits only clients that present one of them, also if the certificate is optional.
bool ClientPolicy::admits(gnutls_session_t session) const {
  unsigned count = 0;
  const gnutls_datum_t* leaf = gnutls_certificate_get_peers(session, &count);
  if (leaf == nullptr || count == 0) return !must_have(auth_) && allowed_sans_.empty();
  if (must_verify(auth_) && !has_trusted_issuer(session)) return false;
  if (allowed_sans_.empty()) return true;
  const auto is_allowed = [this](const std::string& name) {
    return std::ranges::find(allowed_sans_, name) != allowed_sans_.end();
  };
  return std::ranges::any_of(subject_alt_names(*leaf), is_allowed);
}

}  // namespace gpumeter
