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
#include "exporter/tls/handles.hpp"

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

inline std::string pem_of(const gnutls_datum_t& datum) {
  std::string text(reinterpret_cast<const char*>(datum.data), datum.size);
  gnutls_free(datum.data);
  return text;
}

/// Signed by `issuer`, or by itself.
inline Pair make(const Request& request = {}, const Pair* issuer = nullptr) {
  gnutls_x509_privkey_t key = nullptr;
  gnutls_x509_privkey_init(&key);
  EXPECT_EQ(gnutls_x509_privkey_generate(key, request.algorithm, request.bits, 0), 0);
  gnutls_x509_crt_t crt = nullptr;
  gnutls_x509_crt_init(&crt);
  static unsigned char serial = 0;
  ++serial;
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
  gnutls_x509_crt_t issuer_crt = crt;
  gnutls_x509_privkey_t issuer_key = key;
  if (issuer != nullptr) {
    gnutls_x509_crt_init(&issuer_crt);
    gnutls_x509_privkey_init(&issuer_key);
    const auto datum = [](const std::string& text) {
      return gnutls_datum_t{reinterpret_cast<unsigned char*>(const_cast<char*>(text.data())),
                            static_cast<unsigned>(text.size())};
    };
    const gnutls_datum_t issuer_pem = datum(issuer->certificate);
    const gnutls_datum_t issuer_key_pem = datum(issuer->key);
    EXPECT_EQ(gnutls_x509_crt_import(issuer_crt, &issuer_pem, GNUTLS_X509_FMT_PEM), 0);
    EXPECT_EQ(gnutls_x509_privkey_import(issuer_key, &issuer_key_pem, GNUTLS_X509_FMT_PEM), 0);
  }
  // Ed25519 has one hash of its own.
  const gnutls_digest_algorithm_t hash =
      gnutls_x509_privkey_get_pk_algorithm(issuer_key) == GNUTLS_PK_EDDSA_ED25519 ? GNUTLS_DIG_SHA512
                                                                                  : GNUTLS_DIG_SHA256;
  EXPECT_EQ(gnutls_x509_crt_sign2(crt, issuer_crt, issuer_key, hash, 0), 0);
  gnutls_datum_t certificate_pem{};
  gnutls_datum_t key_pem{};
  gnutls_x509_crt_export2(crt, GNUTLS_X509_FMT_PEM, &certificate_pem);
  gnutls_x509_privkey_export2_pkcs8(key, GNUTLS_X509_FMT_PEM, nullptr, GNUTLS_PKCS_PLAIN, &key_pem);
  if (issuer != nullptr) {
    gnutls_x509_crt_deinit(issuer_crt);
    gnutls_x509_privkey_deinit(issuer_key);
  }
  gnutls_x509_crt_deinit(crt);
  gnutls_x509_privkey_deinit(key);
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
