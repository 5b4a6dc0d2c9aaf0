#include "exporter/tls/certificate.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string_view>
#include <utility>

namespace gpumeter {
namespace {

/// A view of the text for GnuTLS, which only reads it.
gnutls_datum_t datum(std::string_view text) {
  return {const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(text.data())),
          static_cast<unsigned>(std::min<std::size_t>(text.size(), std::numeric_limits<unsigned>::max()))};
}

Result<GnutlsCertificate> first_certificate(std::string_view pem) {
  gnutls_x509_crt_t* list = nullptr;
  unsigned count = 0;
  const gnutls_datum_t text = datum(pem);
  if (const int code = gnutls_x509_crt_list_import2(&list, &count, &text, GNUTLS_X509_FMT_PEM, 0); code < 0) {
    return gnutls_error(code);
  }
  GnutlsCertificate first(count > 0 ? list[0] : nullptr);
  for (unsigned i = 1; i < count; ++i) gnutls_x509_crt_deinit(list[i]);
  gnutls_free(list);
  if (first == nullptr) return Error("contains no certificate");
  return first;
}

bool can_sign(gnutls_x509_crt_t leaf) {
  unsigned usage = 0;
  const int code = gnutls_x509_crt_get_key_usage(leaf, &usage, nullptr);
  return code < 0 ||
         (usage & GNUTLS_KEY_DIGITAL_SIGNATURE) != 0;  // without the extension all uses are allowed
}

bool has_names(gnutls_x509_crt_t leaf) {
  std::size_t size = 0;
  return gnutls_x509_crt_get_subject_alt_name(leaf, 0, nullptr, &size, nullptr) !=
         GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE;
}

Result<LeafFacts> facts_of(gnutls_x509_crt_t leaf) {
  LeafFacts facts;
  const int algorithm = gnutls_x509_crt_get_pk_algorithm(leaf, nullptr);
  if (algorithm < 0) return gnutls_error(algorithm);
  const bool is_rsa = algorithm == GNUTLS_PK_RSA || algorithm == GNUTLS_PK_RSA_PSS;
  facts.key = is_rsa ? KeyKind::rsa : KeyKind::elliptic;
  facts.can_sign = can_sign(leaf);
  facts.has_names = has_names(leaf);
  facts.not_after = gnutls_x509_crt_get_expiration_time(leaf);
  return facts;
}

/// The key is not part of the Error.
Result<Done> set_key_pair(gnutls_certificate_credentials_t credentials, const TlsSettings& settings) {
  const gnutls_datum_t certificate = datum(settings.certificate);
  const gnutls_datum_t key = datum(settings.key);
  const int code =
      gnutls_certificate_set_x509_key_mem2(credentials, &certificate, &key, GNUTLS_X509_FMT_PEM, nullptr, 0);
  if (code == GNUTLS_E_CERTIFICATE_KEY_MISMATCH) return Error("the key does not belong to the certificate");
  if (code < 0) return gnutls_error(code).with("key");
  return Done{};
}

Result<Done> set_client_ca(gnutls_certificate_credentials_t credentials, const std::string& pem) {
  if (pem.empty()) return Done{};
  const gnutls_datum_t text = datum(pem);
  const int count = gnutls_certificate_set_x509_trust_mem(credentials, &text, GNUTLS_X509_FMT_PEM);
  if (count < 0) return gnutls_error(count).with("client CA");
  if (count == 0) return Error("client CA: contains no certificate");
  return Done{};
}

}  // namespace

Result<LoadedCertificate> load_certificate(const TlsSettings& settings) {
  const Result<GnutlsCertificate> first = first_certificate(settings.certificate);
  if (!first) return first.error().with("certificate");
  const Result<LeafFacts> facts = facts_of(first->get());
  if (!facts) return facts.error().with("certificate");
  gnutls_certificate_credentials_t raw = nullptr;
  if (const int code = gnutls_certificate_allocate_credentials(&raw); code < 0) return gnutls_error(code);
  GnutlsCredentials credentials(raw);
  if (Result<Done> set = set_key_pair(raw, settings); !set) return set.error();
  if (Result<Done> set = set_client_ca(raw, settings.client_ca); !set) return set.error();
  return LoadedCertificate{std::move(credentials), *facts};
}

std::vector<std::string> warnings_of(const LeafFacts& leaf) {
  std::vector<std::string> warnings;
  if (!leaf.can_sign) {
    warnings.emplace_back(
        "the certificate's keyUsage lacks digitalSignature: clients can connect only by TLS 1.2 with the "
        "key exchange RSA, which many refuse");
  }
  if (!leaf.has_names) {
    warnings.emplace_back("the certificate has no subjectAltName: Prometheus and other Go clients reject it");
  }
  return warnings;
}

}  // namespace gpumeter
