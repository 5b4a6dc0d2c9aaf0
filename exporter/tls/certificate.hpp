#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "exporter/access/settings.hpp"
#include "exporter/tls/cipher_suites.hpp"
#include "exporter/tls/handles.hpp"

namespace gpumeter {

/// Properties of the server's own certificate that decide what it can be used for.
struct LeafFacts {
  KeyKind key = KeyKind::rsa;
  bool can_sign = true;        ///< its keyUsage, if it has one, contains digitalSignature
  bool has_names = true;       ///< it has a subjectAltName
  std::int64_t not_after = 0;  ///< Unix time
};

/// The certificate with its key, and the CA of the clients, as GnuTLS holds them.
struct LoadedCertificate {
  GnutlsCredentials credentials;
  LeafFacts leaf;
};

/// The Error names the part that is wrong: the certificate, its key, the pair, or the CA.
Result<LoadedCertificate> load_certificate(const TlsSettings& settings);

/// Sentences for the log about a certificate that many clients will refuse.
std::vector<std::string> warnings_of(const LeafFacts& leaf);

}  // namespace gpumeter
