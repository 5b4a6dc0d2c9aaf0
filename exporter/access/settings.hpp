#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/text.hpp"

namespace gpumeter {

class TlsContext;  // exporter/tls/context.hpp

/// What a client must present, named as in exporter-toolkit, whose web configuration this is
/// (github.com/prometheus/exporter-toolkit, docs/web-configuration.md).
enum class ClientAuth : std::uint8_t {
  none,             ///< "NoClientCert"
  request,          ///< "RequestClientCert": any certificate or none
  require_any,      ///< "RequireAnyClientCert", "RequireClientCert": any certificate, unverified
  verify_if_given,  ///< "VerifyClientCertIfGiven"
  require_verified  ///< "RequireAndVerifyClientCert"
};

enum class TlsVersion : std::uint8_t { tls10, tls11, tls12, tls13 };
inline constexpr EnumNames<TlsVersion, 4> kTlsVersionNames = {{{TlsVersion::tls10, "TLS10"},
                                                               {TlsVersion::tls11, "TLS11"},
                                                               {TlsVersion::tls12, "TLS12"},
                                                               {TlsVersion::tls13, "TLS13"}}};

/// `tls_server_config`. The files that it names were read: all PEM members are contents.
struct TlsSettings {
  std::string certificate;  ///< PEM, the leaf first
  std::string key;          ///< PEM
  std::string client_ca;    ///< PEM; empty: no CA
  ClientAuth client_auth = ClientAuth::none;
  std::vector<std::string> allowed_sans;  ///< exact DNS, e-mail, IP or URI names of the leaf; empty: all
  TlsVersion min_version = TlsVersion::tls12;
  TlsVersion max_version = TlsVersion::tls13;
  std::vector<std::string> cipher_suites;      ///< Go's names; empty: the library's default
  std::vector<std::string> curve_preferences;  ///< CurveP256, CurveP384, CurveP521, X25519
  bool prefer_server_ciphers = true;
  bool operator==(const TlsSettings&) const = default;
};

/// A token bucket over all requests. `burst` 0 with an interval refuses everything, as in exporter-toolkit.
struct RateLimit {
  Nanoseconds interval{0};  ///< time per token; 0: no limit
  unsigned burst = 0;       ///< capacity of the bucket
  bool operator==(const RateLimit&) const = default;
};

/// The web configuration file (`web.config_file`): who may connect, and what every answer carries.
struct WebSettings {
  std::optional<TlsSettings> tls;
  std::vector<std::pair<std::string, std::string>> headers;  ///< added to every answer but 429
  std::map<std::string, std::string> users;                  ///< name -> bcrypt hash; empty: no login
  RateLimit rate_limit;
  bool operator==(const WebSettings&) const = default;
};

/// One state of the web configuration, never changed. It lives as long as an answer or a connection uses it.
struct WebGeneration {
  WebSettings settings;
  std::shared_ptr<const TlsContext> tls;  ///< null: plain HTTP
};

}  // namespace gpumeter
