#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "exporter/access/settings.hpp"
#include "exporter/tls/handles.hpp"

namespace gpumeter {

/// The part of a certificate's key in a cipher suite of TLS 1.2: an RSA key cannot serve a suite of ECDSA,
/// and an elliptic key none of RSA.
enum class KeyKind : std::uint8_t { rsa, elliptic };

/// Properties of the server's own certificate that decide what it can be used for.
struct LeafFacts {
  KeyKind key = KeyKind::rsa;
  bool can_sign = true;        ///< its keyUsage, if it has one, contains digitalSignature
  bool has_names = true;       ///< it has a subjectAltName
  std::int64_t not_after = 0;  ///< Unix time
};

/// A cipher suite as Go names it in tls.CipherSuites(), the only names that exporter-toolkit accepts.
struct CipherSuite {
  std::string_view name;
  std::uint16_t id;            ///< as in IANA's registry "TLS Cipher Suites"
  std::optional<KeyKind> key;  ///< nullopt: a suite of TLS 1.3, which fits every key
  std::string_view cipher;     ///< in GnuTLS' priority strings
  bool is_aead;                ///< false: with HMAC-SHA1
};

/// A group of the key exchange as Go names it, and in GnuTLS' priority strings.
struct Curve {
  std::string_view name;
  std::string_view group;
};

// clang-format off
inline constexpr std::array kCipherSuites = {
    CipherSuite{"TLS_AES_128_GCM_SHA256", 0x1301, std::nullopt, "AES-128-GCM", true},
    CipherSuite{"TLS_AES_256_GCM_SHA384", 0x1302, std::nullopt, "AES-256-GCM", true},
    CipherSuite{"TLS_CHACHA20_POLY1305_SHA256", 0x1303, std::nullopt, "CHACHA20-POLY1305", true},
    CipherSuite{"TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA", 0xc009, KeyKind::elliptic, "AES-128-CBC", false},
    CipherSuite{"TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA", 0xc00a, KeyKind::elliptic, "AES-256-CBC", false},
    CipherSuite{"TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", 0xc013, KeyKind::rsa, "AES-128-CBC", false},
    CipherSuite{"TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA", 0xc014, KeyKind::rsa, "AES-256-CBC", false},
    CipherSuite{"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", 0xc02b, KeyKind::elliptic, "AES-128-GCM", true},
    CipherSuite{"TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", 0xc02c, KeyKind::elliptic, "AES-256-GCM", true},
    CipherSuite{"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", 0xc02f, KeyKind::rsa, "AES-128-GCM", true},
    CipherSuite{"TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", 0xc030, KeyKind::rsa, "AES-256-GCM", true},
    CipherSuite{"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", 0xcca8, KeyKind::rsa, "CHACHA20-POLY1305", true},
    CipherSuite{"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", 0xcca9, KeyKind::elliptic, "CHACHA20-POLY1305", true},
};
inline constexpr std::array kCurves = {
    Curve{"CurveP256", "GROUP-SECP256R1"},
    Curve{"CurveP384", "GROUP-SECP384R1"},
    Curve{"CurveP521", "GROUP-SECP521R1"},
    Curve{"X25519", "GROUP-X25519"},
};
// clang-format on

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
