#pragma once

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/result.hpp"
#include "exporter/access/settings.hpp"

struct gnutls_session_int;

namespace gpumeter {

/// The TLS side of one generation of the web configuration: certificate, key, CA, versions, cipher suites and
/// the policy for clients. Immutable; any thread. A connection holds the context that it was opened with, so
/// a replaced certificate takes effect with the next connection.
class TlsContext {
 public:
  /// The Error states which key of `tls_server_config` is wrong, and never contains the private key.
  static Result<std::shared_ptr<const TlsContext>> make(const TlsSettings& settings);
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;
  ~TlsContext();

  /// Prepares a server's session before its handshake; the context must outlive the session. Returns false if
  /// GnuTLS refuses; the handshake then must not take place.
  bool apply(gnutls_session_int* session) const noexcept;

  /// When the server's certificate ends, as Unix time.
  std::int64_t not_after() const noexcept;
  /// Sentences for the log about settings that work only partly.
  const std::vector<std::string>& warnings() const noexcept;
  /// Versions, suites and groups, in the syntax of GnuTLS' priority strings.
  std::string_view priority() const noexcept;

 private:
  struct Parts;
  explicit TlsContext(std::unique_ptr<const Parts> parts);

  const std::unique_ptr<const Parts> parts_;
};

/// Owners of GnuTLS' objects, which are pointers with a function that frees each.
template <auto Free>
struct GnutlsFree {
  template <class T>
  void operator()(T* object) const noexcept {
    Free(object);
  }
};
template <class Handle, auto Free>
using GnutlsPtr = std::unique_ptr<std::remove_pointer_t<Handle>, GnutlsFree<Free>>;

using GnutlsSession = GnutlsPtr<gnutls_session_t, gnutls_deinit>;
using GnutlsPriority = GnutlsPtr<gnutls_priority_t, gnutls_priority_deinit>;
using GnutlsCertificate = GnutlsPtr<gnutls_x509_crt_t, gnutls_x509_crt_deinit>;
using GnutlsCredentials = GnutlsPtr<gnutls_certificate_credentials_t, gnutls_certificate_free_credentials>;

inline Error gnutls_error(int code) { return Error(gnutls_strerror(code)); }

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
