#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "exporter/access/settings.hpp"
#include "exporter/tls/certificate.hpp"
#include "exporter/tls/handles.hpp"

namespace gpumeter {

/// Versions, cipher suites and groups that a server offers, as GnuTLS holds them.
struct TlsOffer {
  GnutlsPriority priority;
  std::string text;                   ///< the priority string
  std::vector<std::uint16_t> suites;  ///< IANA's numbers, in the order of preference
  std::vector<std::string> warnings;  ///< sentences for the log
};

/// GnuTLS offers every combination of a key exchange and a cipher. Only one key exchange fits a certificate's
/// key, so a list of suites is offered exactly, without those for the other kind of key, which no handshake
/// could choose. The result is compared with the list. As in Go, the list does not apply if TLS 1.2 is
/// disabled. Otherwise TLS 1.3 offers only the listed ciphers, whereas Go offers all of TLS 1.3.
Result<TlsOffer> make_offer(const TlsSettings& settings, const LeafFacts& leaf);

}  // namespace gpumeter
