#pragma once

#include <gnutls/abstract.h>
#include <gnutls/x509.h>
#include <gtest/gtest.h>

#include <ctime>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "exporter/access/settings.hpp"
#include "exporter/tls/context.hpp"

/// Certificates made by GnuTLS for one test.
namespace gpumeter::pki {

struct Pair {
  std::string certificate;  ///< PEM
  std::string key;          ///< PEM
};

struct Request {
  gnutls_pk_algorithm_t algorithm = GNUTLS_PK_ECDSA;
  unsigned bits = GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1);
  unsigned usage = GNUTLS_KEY_DIGITAL_SIGNATURE;  ///< 0: without the extension
  std::vector<std::pair<gnutls_x509_subject_alt_name_t, std::string>> names = {
      {GNUTLS_SAN_DNSNAME, "localhost"}};
  const char* purpose = nullptr;  ///< an extended key usage
  std::time_t not_after = 2'000'000'000;
  bool is_ca = false;
};

using Key = GnutlsPtr<gnutls_x509_privkey_t, gnutls_x509_privkey_deinit>;

inline std::string pem_of(const gnutls_datum_t& datum) {
  std::string text(reinterpret_cast<const char*>(datum.data), datum.size);
  gnutls_free(datum.data);
  return text;
}

inline gnutls_datum_t datum(const std::string& text) {
  return {reinterpret_cast<unsigned char*>(const_cast<char*>(text.data())),
          static_cast<unsigned>(text.size())};
}

inline GnutlsCertificate new_certificate() {
  gnutls_x509_crt_t raw = nullptr;
  gnutls_x509_crt_init(&raw);
  return GnutlsCertificate(raw);
}

inline Key new_key() {
  gnutls_x509_privkey_t raw = nullptr;
  gnutls_x509_privkey_init(&raw);
  return Key(raw);
}

inline GnutlsCertificate unsigned_certificate(const Request& request, gnutls_x509_privkey_t key) {
  static unsigned char serial = 0;
  ++serial;
  GnutlsCertificate certificate = new_certificate();
  gnutls_x509_crt_t crt = certificate.get();
  gnutls_x509_crt_set_version(crt, 3);
  gnutls_x509_crt_set_serial(crt, &serial, 1);
  gnutls_x509_crt_set_activation_time(crt, 1'500'000'000);
  gnutls_x509_crt_set_expiration_time(crt, request.not_after);
  gnutls_x509_crt_set_dn(crt, "CN=test", nullptr);
  gnutls_x509_crt_set_key(crt, key);
  if (request.usage != 0) gnutls_x509_crt_set_key_usage(crt, request.usage);
  gnutls_x509_crt_set_basic_constraints(crt, request.is_ca ? 1 : 0, -1);
  if (request.purpose != nullptr) gnutls_x509_crt_set_key_purpose_oid(crt, request.purpose, 0);
  for (const auto& [type, name] : request.names) {
    gnutls_x509_crt_set_subject_alt_name(crt, type, name.data(), static_cast<unsigned>(name.size()),
                                         GNUTLS_FSAN_APPEND);
  }
  return certificate;
}

inline void sign(gnutls_x509_crt_t crt, gnutls_x509_crt_t issuer, gnutls_x509_privkey_t key) {
  const bool is_ed25519 = gnutls_x509_privkey_get_pk_algorithm(key) == GNUTLS_PK_EDDSA_ED25519;
  // Ed25519 has one hash of its own.
  EXPECT_EQ(gnutls_x509_crt_sign2(crt, issuer, key, is_ed25519 ? GNUTLS_DIG_SHA512 : GNUTLS_DIG_SHA256, 0),
            0);
}

inline void sign_by(gnutls_x509_crt_t crt, const Pair& issuer) {
  const GnutlsCertificate certificate = new_certificate();
  const Key key = new_key();
  const gnutls_datum_t certificate_pem = datum(issuer.certificate);
  const gnutls_datum_t key_pem = datum(issuer.key);
  EXPECT_EQ(gnutls_x509_crt_import(certificate.get(), &certificate_pem, GNUTLS_X509_FMT_PEM), 0);
  EXPECT_EQ(gnutls_x509_privkey_import2(key.get(), &key_pem, GNUTLS_X509_FMT_PEM, nullptr, 0), 0);
  sign(crt, certificate.get(), key.get());
}

/// Signed by `issuer`, or by itself.
inline Pair make(const Request& request = {}, const Pair* issuer = nullptr) {
  const Key key = new_key();
  EXPECT_EQ(gnutls_x509_privkey_generate(key.get(), request.algorithm, request.bits, 0), 0);
  const GnutlsCertificate certificate = unsigned_certificate(request, key.get());
  if (issuer != nullptr) {
    sign_by(certificate.get(), *issuer);
  } else {
    sign(certificate.get(), certificate.get(), key.get());
  }
  gnutls_datum_t certificate_pem{};
  gnutls_datum_t key_pem{};
  gnutls_x509_crt_export2(certificate.get(), GNUTLS_X509_FMT_PEM, &certificate_pem);
  gnutls_x509_privkey_export2_pkcs8(key.get(), GNUTLS_X509_FMT_PEM, nullptr, GNUTLS_PKCS_PLAIN, &key_pem);
  return {pem_of(certificate_pem), pem_of(key_pem)};
}

inline Request rsa() {
  return {.algorithm = GNUTLS_PK_RSA,
          .bits = 2048,
          .usage = GNUTLS_KEY_DIGITAL_SIGNATURE | GNUTLS_KEY_KEY_ENCIPHERMENT};
}

inline Pair ca() { return make({.usage = GNUTLS_KEY_KEY_CERT_SIGN, .names = {}, .is_ca = true}); }

inline TlsSettings settings(const Pair& pair) { return {.certificate = pair.certificate, .key = pair.key}; }

}  // namespace gpumeter::pki
