#include "exporter/tls/context.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "base/text.hpp"

namespace gpumeter {
namespace {

Error gnutls_error(int code) { return Error(gnutls_strerror(code)); }

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
constexpr CipherSuite kCipherSuites[] = {
    {"TLS_AES_128_GCM_SHA256", 0x1301, std::nullopt, "AES-128-GCM", true},
    {"TLS_AES_256_GCM_SHA384", 0x1302, std::nullopt, "AES-256-GCM", true},
    {"TLS_CHACHA20_POLY1305_SHA256", 0x1303, std::nullopt, "CHACHA20-POLY1305", true},
    {"TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA", 0xc009, KeyKind::elliptic, "AES-128-CBC", false},
    {"TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA", 0xc00a, KeyKind::elliptic, "AES-256-CBC", false},
    {"TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", 0xc013, KeyKind::rsa, "AES-128-CBC", false},
    {"TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA", 0xc014, KeyKind::rsa, "AES-256-CBC", false},
    {"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", 0xc02b, KeyKind::elliptic, "AES-128-GCM", true},
    {"TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", 0xc02c, KeyKind::elliptic, "AES-256-GCM", true},
    {"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", 0xc02f, KeyKind::rsa, "AES-128-GCM", true},
    {"TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", 0xc030, KeyKind::rsa, "AES-256-GCM", true},
    {"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", 0xcca8, KeyKind::rsa, "CHACHA20-POLY1305", true},
    {"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", 0xcca9, KeyKind::elliptic, "CHACHA20-POLY1305", true},
};
constexpr Curve kCurves[] = {
    {"CurveP256", "GROUP-SECP256R1"},
    {"CurveP384", "GROUP-SECP384R1"},
    {"CurveP521", "GROUP-SECP521R1"},
    {"X25519", "GROUP-X25519"},
};
// clang-format on

/// Returns null if `name` is unknown.
template <class Row, std::size_t N>
const Row* find(const Row (&rows)[N], std::string_view name) noexcept {
  const auto found = std::ranges::find(rows, name, &Row::name);
  return found == std::end(rows) ? nullptr : found;
}

constexpr EnumNames<TlsVersion, 4> kVersionTokens = {{{TlsVersion::tls13, "VERS-TLS1.3"},
                                                      {TlsVersion::tls12, "VERS-TLS1.2"},
                                                      {TlsVersion::tls11, "VERS-TLS1.1"},
                                                      {TlsVersion::tls10, "VERS-TLS1.0"}}};

/// The default without the key exchanges RSA, which has no forward secrecy, and DHE, which costs the server
/// most. A certificate that must not sign can do nothing but RSA.
constexpr std::string_view kDefault = "NORMAL:-VERS-ALL:-DHE-RSA";

using Suites = std::vector<const CipherSuite*>;

/// What the settings ask for, with all names resolved.
struct Wish {
  std::vector<TlsVersion> versions;  ///< the newest first
  Suites suites;                     ///< of TLS 1.2 and older, for the certificate's key
  bool is_listed = false;            ///< `suites` replaces the default
  std::vector<const Curve*> curves;
};

bool has_13(const Wish& wish) { return !wish.versions.empty() && wish.versions.front() == TlsVersion::tls13; }
bool has_older(const Wish& wish) {
  return !wish.versions.empty() && wish.versions.back() < TlsVersion::tls13;
}

Result<Wish> resolve(const TlsSettings& settings, KeyKind key) {
  Wish wish;
  for (const auto& [version, token] : kVersionTokens) {
    if (version >= settings.min_version && version <= settings.max_version) wish.versions.push_back(version);
  }
  if (wish.versions.empty()) return Error("min_version is above max_version");
  for (const std::string& name : settings.cipher_suites) {
    const CipherSuite* suite = find(kCipherSuites, name);
    if (suite == nullptr) return Error("unknown cipher: " + name);
    if (suite->key == key) wish.suites.push_back(suite);
  }
  wish.is_listed = !settings.cipher_suites.empty();
  for (const std::string& name : settings.curve_preferences) {
    const Curve* curve = find(kCurves, name);
    if (curve == nullptr) return Error("unknown curve: " + name);
    wish.curves.push_back(curve);
  }
  return wish;
}

/// Removes versions for which the list leaves no suite.
Result<Done> fit_versions(Wish& wish, std::vector<std::string>& warnings) {
  if (!wish.is_listed || !has_older(wish)) return Done{};
  if (wish.suites.empty()) {
    std::erase_if(wish.versions, [](TlsVersion version) { return version != TlsVersion::tls13; });
    if (wish.versions.empty()) return Error("no suite of cipher_suites fits the certificate's key");
    warnings.emplace_back(
        "only TLS 1.3 is offered: no suite of cipher_suites for TLS 1.2 fits the certificate's key");
  } else if (has_13(wish) && std::ranges::none_of(wish.suites, &CipherSuite::is_aead)) {
    std::erase(wish.versions, TlsVersion::tls13);
    warnings.emplace_back("TLS 1.3 is not offered: cipher_suites contains none of its ciphers");
  }
  return Done{};
}

Result<Done> fit_certificate(const Wish& wish, const LeafFacts& leaf) {
  if (leaf.can_sign) return Done{};
  const bool is_rsa_possible = leaf.key == KeyKind::rsa && !wish.is_listed && has_older(wish);
  if (is_rsa_possible) return Done{};
  return Error("the certificate's keyUsage lacks digitalSignature, which all offered cipher suites require");
}

void add(std::string& text, std::string_view token) {
  const std::string entry = ":+" + std::string(token);
  if ((text + ":").find(entry + ":") == std::string::npos) text += entry;
}

/// The listed suites, or all of TLS 1.3 if nothing older is offered.
std::string listed(const Wish& wish, KeyKind key) {
  std::string text = "NONE";
  add(text, "CTYPE-X509");
  add(text, "COMP-NULL");
  add(text, "SIGN-ALL");
  if (has_older(wish)) {
    add(text, key == KeyKind::rsa ? "ECDHE-RSA" : "ECDHE-ECDSA");
    for (const CipherSuite* suite : wish.suites) add(text, suite->cipher);
    for (const CipherSuite* suite : wish.suites) add(text, suite->is_aead ? "AEAD" : "SHA1");
  } else {
    for (const CipherSuite& suite : kCipherSuites) {
      if (!suite.key) add(text, suite.cipher);
    }
    add(text, "AEAD");
  }
  return text;
}

std::string priority_text(const Wish& wish, const LeafFacts& leaf, bool prefers_server) {
  std::string text = wish.is_listed ? listed(wish, leaf.key) : std::string(kDefault);
  if (!wish.is_listed && leaf.can_sign) text += ":-RSA";
  for (const TlsVersion version : wish.versions) add(text, kVersionTokens.of(version));
  if (!wish.curves.empty() && !wish.is_listed) text += ":-GROUP-ALL";
  if (wish.curves.empty() && wish.is_listed) add(text, "GROUP-ALL");
  for (const Curve* curve : wish.curves) add(text, curve->group);
  if (prefers_server) text += ":%SERVER_PRECEDENCE";
  return text;
}

std::vector<std::uint16_t> suites_of(gnutls_priority_t priority) {
  std::vector<std::uint16_t> suites;
  unsigned index = 0;
  for (unsigned i = 0;; ++i) {
    const int code = gnutls_priority_get_cipher_suite_index(priority, i, &index);
    if (code == GNUTLS_E_UNKNOWN_CIPHER_SUITE) continue;
    if (code < 0) return suites;
    std::array<unsigned char, 2> id{};
    gnutls_cipher_suite_info(index, id.data(), nullptr, nullptr, nullptr, nullptr);
    suites.push_back(static_cast<std::uint16_t>(id[0] << 8 | id[1]));
  }
}

/// The library or the machine's policy (/etc/gnutls/config) may lack listed suites.
Result<Done> compare(const Wish& wish, const std::vector<std::uint16_t>& suites,
                     std::vector<std::string>& warnings) {
  if (!wish.is_listed || !has_older(wish)) return Done{};
  const auto is_13 = [](std::uint16_t id) { return id >> 8 == 0x13; };
  std::string missing;
  for (const CipherSuite* suite : wish.suites) {
    const bool found = std::ranges::find(suites, suite->id) != suites.end();
    if (!found) missing += (missing.empty() ? "" : ", ") + std::string(suite->name);
  }
  for (const std::uint16_t id : suites) {
    const bool is_asked = std::ranges::find(wish.suites, id, &CipherSuite::id) != wish.suites.end();
    if (!is_asked && !is_13(id)) return Error("cipher_suites cannot be offered without other suites");
  }
  if (std::ranges::all_of(suites, is_13) && !has_13(wish))
    return Error("GnuTLS offers none of cipher_suites");
  if (!missing.empty()) warnings.push_back("GnuTLS does not offer these suites of cipher_suites: " + missing);
  return Done{};
}

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

Result<LeafFacts> facts_of(std::string_view pem) {
  const Result<GnutlsCertificate> first = first_certificate(pem);
  if (!first) return first.error();
  const gnutls_x509_crt_t leaf = first->get();
  const int algorithm = gnutls_x509_crt_get_pk_algorithm(leaf, nullptr);
  if (algorithm < 0) return gnutls_error(algorithm);
  const bool is_rsa = algorithm == GNUTLS_PK_RSA || algorithm == GNUTLS_PK_RSA_PSS;
  unsigned usage = 0;  // without the extension all uses are allowed
  const bool is_limited = gnutls_x509_crt_get_key_usage(leaf, &usage, nullptr) >= 0;
  std::size_t size = 0;
  const int name = gnutls_x509_crt_get_subject_alt_name(leaf, 0, nullptr, &size, nullptr);
  return LeafFacts{.key = is_rsa ? KeyKind::rsa : KeyKind::elliptic,
                   .can_sign = !is_limited || (usage & GNUTLS_KEY_DIGITAL_SIGNATURE) != 0,
                   .has_names = name != GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE,
                   .not_after = gnutls_x509_crt_get_expiration_time(leaf)};
}

/// The certificate with its key. The Error names the part that is wrong: the key or the pair; the key is not
/// part of it.
Result<Done> load_pair(gnutls_certificate_credentials_t credentials, const TlsSettings& settings) {
  const gnutls_datum_t certificate = datum(settings.certificate);
  const gnutls_datum_t key = datum(settings.key);
  const int code =
      gnutls_certificate_set_x509_key_mem2(credentials, &certificate, &key, GNUTLS_X509_FMT_PEM, nullptr, 0);
  if (code == GNUTLS_E_CERTIFICATE_KEY_MISMATCH) return Error("the key does not belong to the certificate");
  if (code < 0) return gnutls_error(code).with("key");
  return Done{};
}

/// The CA of the clients.
Result<Done> load_ca(gnutls_certificate_credentials_t credentials, const TlsSettings& settings) {
  if (settings.client_ca.empty()) return Done{};
  const gnutls_datum_t ca = datum(settings.client_ca);
  const int count = gnutls_certificate_set_x509_trust_mem(credentials, &ca, GNUTLS_X509_FMT_PEM);
  if (count < 0) return gnutls_error(count).with("client CA");
  if (count == 0) return Error("client CA: contains no certificate");
  return Done{};
}

bool must_verify(ClientAuth auth) {
  return auth == ClientAuth::verify_if_given || auth == ClientAuth::require_verified;
}

bool must_have(ClientAuth auth) {
  return auth == ClientAuth::require_any || auth == ClientAuth::require_verified;
}

/// Warns of a certificate that many clients will refuse, and of policies that admit all or none.
void add_warnings(const LeafFacts& leaf, const TlsSettings& settings, std::vector<std::string>& warnings) {
  if (!leaf.can_sign) {
    warnings.emplace_back(
        "the certificate's keyUsage lacks digitalSignature: clients can connect only by TLS 1.2 with the "
        "key exchange RSA, which many refuse");
  }
  if (!leaf.has_names) {
    warnings.emplace_back("the certificate has no subjectAltName: Prometheus and other Go clients reject it");
  }
  if (!settings.allowed_sans.empty() && !must_verify(settings.client_auth)) {
    warnings.emplace_back(
        "client_allowed_sans without a verifying client_auth_type: any client can issue itself a certificate "
        "with these names");
  }
  if (must_verify(settings.client_auth) && settings.client_ca.empty()) {
    warnings.emplace_back("no client CA is configured: every client certificate is rejected");
  }
}

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

/// The DNS names, e-mail addresses, IP addresses and URIs of the subjectAltName, IP addresses as text.
/// `der` is a certificate; the result is empty if it cannot be read.
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

/// Go requires the same purpose of a client's certificate.
bool has_trusted_issuer(gnutls_session_t session) {
  char purpose[] = GNUTLS_KP_TLS_WWW_CLIENT;
  gnutls_typed_vdata_st wanted{GNUTLS_DT_KEY_PURPOSE_OID, reinterpret_cast<unsigned char*>(purpose), 0};
  unsigned status = GNUTLS_CERT_INVALID;
  return gnutls_certificate_verify_peers(session, &wanted, 1, &status) == GNUTLS_E_SUCCESS && status == 0;
}

}  // namespace

bool knows_cipher_suite(std::string_view name) noexcept { return find(kCipherSuites, name) != nullptr; }
bool knows_curve(std::string_view name) noexcept { return find(kCurves, name) != nullptr; }

// GnuTLS offers every combination of a key exchange and a cipher. Only one key exchange fits a certificate's
// key, so a list of suites is offered exactly, without those for the other kind of key, which no handshake
// could choose. The result is compared with the list. As in Go, the list does not apply if TLS 1.2 is
// disabled. Otherwise TLS 1.3 offers only the listed ciphers, whereas Go offers all of TLS 1.3.
Result<std::shared_ptr<const TlsContext>> TlsContext::make(const TlsSettings& settings) {
  gnutls_certificate_credentials_t credentials = nullptr;
  if (const int code = gnutls_certificate_allocate_credentials(&credentials); code < 0)
    return gnutls_error(code);
  const auto context = std::make_shared<TlsContext>();
  context->credentials_.reset(credentials);
  std::string problems;
  const auto add = [&](const Error& error) { problems += (problems.empty() ? "" : "; ") + error.message(); };
  if (!settings.allowed_sans.empty() && settings.client_auth == ClientAuth::none)
    add(Error("client_allowed_sans requires a client_auth_type that requests a certificate"));
  const Result<LeafFacts> leaf = facts_of(settings.certificate);
  if (!leaf) add(leaf.error().with("certificate"));
  if (const Result<Done> pair = load_pair(credentials, settings); leaf && !pair) add(pair.error());
  if (const Result<Done> ca = load_ca(credentials, settings); !ca) add(ca.error());
  if (!problems.empty()) return Error(problems);
  Result<Wish> wish = resolve(settings, leaf->key);
  if (!wish) return wish.error();
  if (Result<Done> fits = fit_versions(*wish, context->warnings_); !fits) return fits.error();
  if (Result<Done> fits = fit_certificate(*wish, *leaf); !fits) return fits.error();
  context->text_ = priority_text(*wish, *leaf, settings.prefer_server_ciphers);
  gnutls_priority_t raw = nullptr;
  if (const int code = gnutls_priority_init(&raw, context->text_.c_str(), nullptr); code < 0) {
    return gnutls_error(code).with("GnuTLS priority " + context->text_);
  }
  context->priority_.reset(raw);
  context->suites_ = suites_of(raw);
  if (Result<Done> same = compare(*wish, context->suites_, context->warnings_); !same) return same.error();
  add_warnings(*leaf, settings, context->warnings_);
  context->not_after_ = leaf->not_after;
  context->auth_ = settings.client_auth;
  context->allowed_sans_ = settings.allowed_sans;
  return std::shared_ptr<const TlsContext>(context);
}

bool TlsContext::apply(gnutls_session_t session) const noexcept {
  if (gnutls_priority_set(session, priority_.get()) < 0) return false;
  if (gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, credentials_.get()) < 0) return false;
  // A missing certificate is rejected in verify(): GnuTLS alone would send no alert.
  const bool is_asked = auth_ != ClientAuth::none;
  gnutls_certificate_server_set_request(session, is_asked ? GNUTLS_CERT_REQUEST : GNUTLS_CERT_IGNORE);
  if (!is_asked) return true;
  gnutls_session_set_ptr(session, const_cast<TlsContext*>(this));
  gnutls_session_set_verify_function(session, verify);
  return true;
}

// libmicrohttpd closes the socket without an alert, so the client would see only an end of file. The alerts
// are those of Go's servers.
int TlsContext::verify(gnutls_session_t session) noexcept {
  try {
    if (static_cast<const TlsContext*>(gnutls_session_get_ptr(session))->admits(session)) return 0;
  } catch (...) {  // out of memory: not admitted
  }
  const bool is_missing = gnutls_certificate_get_peers(session, nullptr) == nullptr;
  const bool has_alert = gnutls_protocol_get_version(session) >= GNUTLS_TLS1_3;
  gnutls_alert_send(session, GNUTLS_AL_FATAL,
                    is_missing && has_alert ? GNUTLS_A_CERTIFICATE_REQUIRED : GNUTLS_A_BAD_CERTIFICATE);
  return GNUTLS_E_CERTIFICATE_ERROR;
}

// A list of names admits only clients that present one of them, also if the certificate is optional.
bool TlsContext::admits(gnutls_session_t session) const {
  unsigned count = 0;
  const gnutls_datum_t* leaf = gnutls_certificate_get_peers(session, &count);
  if (leaf == nullptr || count == 0) return !must_have(auth_) && allowed_sans_.empty();
  if (must_verify(auth_) && !has_trusted_issuer(session)) return false;
  if (allowed_sans_.empty()) return true;
  const std::vector<std::string> names = subject_alt_names(*leaf);
  return std::ranges::find_first_of(names, allowed_sans_) != names.end();
}

}  // namespace gpumeter
