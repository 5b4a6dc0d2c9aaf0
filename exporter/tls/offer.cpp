#include "exporter/tls/offer.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/enum_names.hpp"

namespace gpumeter {
namespace {

/// Returns null if `name` is unknown.
template <class Rows>
auto find(const Rows& rows, std::string_view name) noexcept {
  const auto found = std::ranges::find(rows, name, [](const auto& row) { return row.name; });
  return found == rows.end() ? nullptr : &*found;
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
Result<Done> compare(const Wish& wish, TlsOffer& offer) {
  if (!wish.is_listed || !has_older(wish)) return Done{};
  const auto is_13 = [](std::uint16_t id) { return id >> 8 == 0x13; };
  std::string missing;
  for (const CipherSuite* suite : wish.suites) {
    const bool found = std::ranges::find(offer.suites, suite->id) != offer.suites.end();
    if (!found) missing += (missing.empty() ? "" : ", ") + std::string(suite->name);
  }
  for (const std::uint16_t id : offer.suites) {
    const bool is_asked = std::ranges::find(wish.suites, id, &CipherSuite::id) != wish.suites.end();
    if (!is_asked && !is_13(id)) return Error("cipher_suites cannot be offered without other suites");
  }
  if (std::ranges::all_of(offer.suites, is_13) && !has_13(wish))
    return Error("GnuTLS offers none of cipher_suites");
  if (!missing.empty())
    offer.warnings.push_back("GnuTLS does not offer these suites of cipher_suites: " + missing);
  return Done{};
}

}  // namespace

Result<TlsOffer> make_offer(const TlsSettings& settings, const LeafFacts& leaf) {
  Result<Wish> wish = resolve(settings, leaf.key);
  if (!wish) return wish.error();
  TlsOffer offer;
  if (Result<Done> fits = fit_versions(*wish, offer.warnings); !fits) return fits.error();
  if (Result<Done> fits = fit_certificate(*wish, leaf); !fits) return fits.error();
  offer.text = priority_text(*wish, leaf, settings.prefer_server_ciphers);
  gnutls_priority_t raw = nullptr;
  if (const int code = gnutls_priority_init(&raw, offer.text.c_str(), nullptr); code < 0) {
    return gnutls_error(code).with("GnuTLS priority " + offer.text);
  }
  offer.priority.reset(raw);
  offer.suites = suites_of(raw);
  if (Result<Done> same = compare(*wish, offer); !same) return same.error();
  return offer;
}

}  // namespace gpumeter
