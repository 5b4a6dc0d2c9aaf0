#include "exporter/tls/context.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/unit/exporter/tls/handshake.hpp"
#include "tests/unit/exporter/tls/pki.hpp"

namespace gpumeter {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string error_of(const TlsSettings& settings) {
  const auto context = TlsContext::make(settings);
  return context ? "" : context.error().message();
}

std::shared_ptr<const TlsContext> context_of(const TlsSettings& settings) {
  auto context = TlsContext::make(settings);
  if (context) return *std::move(context);
  ADD_FAILURE() << context.error().message();
  return nullptr;
}

TEST(TlsContext, APairIsLoadedWithItsEnd) {
  const auto context = context_of(pki::settings(pki::make({.not_after = 1'900'000'000})));
  EXPECT_EQ(context->not_after(), 1'900'000'000);
  EXPECT_THAT(context->warnings(), IsEmpty());
}

TEST(TlsContext, EveryKindOfKeyShakesHands) {
  for (const pki::Request& request : {pki::rsa(), pki::Request{},
                                      pki::Request{.algorithm = GNUTLS_PK_EDDSA_ED25519,
                                      .bits = GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_ED25519)}}) {
    const auto context = context_of(pki::settings(pki::make(request)));
    for (const char* version : {"TLS1.2", "TLS1.3"}) {
      EXPECT_EQ(shake_hands(*context, {.version = version}), "") << request.algorithm << version;
    }
  }
}

TEST(TlsContext, ErrorsNameThePart) {
  const pki::Pair pair = pki::make();
  const pki::Pair other = pki::make();
  TlsSettings settings = pki::settings(pair);
  settings.key = other.key;
  EXPECT_EQ(error_of(settings), "the key does not belong to the certificate");
  settings.key = "junk";
  EXPECT_THAT(error_of(settings), HasSubstr("key: "));
  settings = pki::settings(pair);
  settings.certificate = "junk";
  EXPECT_THAT(error_of(settings), HasSubstr("certificate: "));
  settings = pki::settings(pair);
  settings.client_ca = "junk";
  EXPECT_THAT(error_of(settings), HasSubstr("client CA: "));
  settings = pki::settings(pair);
  settings.allowed_sans = {"a"};
  EXPECT_THAT(error_of(settings), HasSubstr("client_allowed_sans requires"));
}

TEST(TlsContext, WarnsOfCertificatesThatClientsRefuse) {
  pki::Request request = pki::rsa();
  request.usage = GNUTLS_KEY_KEY_ENCIPHERMENT;
  request.names.clear();
  const auto context = context_of(pki::settings(pki::make(request)));
  EXPECT_THAT(context->warnings(),
              ElementsAre(HasSubstr("lacks digitalSignature"), HasSubstr("no subjectAltName")));
}

TEST(TlsContext, WarnsOfPoliciesThatAdmitAllOrNone) {
  TlsSettings settings = pki::settings(pki::make());
  settings.client_auth = ClientAuth::require_verified;
  EXPECT_THAT(context_of(settings)->warnings(),
              ElementsAre(HasSubstr("every client certificate is rejected")));
  settings.client_auth = ClientAuth::require_any;
  settings.allowed_sans = {"a"};
  EXPECT_THAT(context_of(settings)->warnings(), ElementsAre(HasSubstr("any client can issue itself")));
}

/// The rows of the table: which clients a policy admits.
struct PolicyRow {
  ClientAuth auth;
  bool without;  ///< a client without a certificate
  bool own;      ///< with a certificate of another issuer
  bool trusted;  ///< with one of the CA
};

TEST(ClientPolicy, AdmitsAsGoDoes) {
  const pki::Pair server = pki::make();
  const pki::Pair ca = pki::ca();
  const pki::Pair trusted = pki::make({}, &ca);
  const pki::Pair own = pki::make();
  for (const PolicyRow& row :
       {PolicyRow{ClientAuth::none, true, true, true}, PolicyRow{ClientAuth::request, true, true, true},
        PolicyRow{ClientAuth::require_any, false, true, true},
        PolicyRow{ClientAuth::verify_if_given, true, false, true},
        PolicyRow{ClientAuth::require_verified, false, false, true}}) {
    TlsSettings settings = pki::settings(server);
    settings.client_auth = row.auth;
    if (row.auth != ClientAuth::none) settings.client_ca = ca.certificate;
    const auto context = context_of(settings);
    for (const char* version : {"TLS1.2", "TLS1.3"}) {
      SCOPED_TRACE(testing::Message() << "policy " << int(row.auth) << " " << version);
      const bool has_alert = version == std::string_view("TLS1.3");
      const char* missing = has_alert ? "alert: Certificate is required" : "alert: Certificate is bad";
      EXPECT_EQ(shake_hands(*context, {.version = version}), row.without ? "" : missing);
      const char* bad = "alert: Certificate is bad";
      EXPECT_EQ(shake_hands(*context, {.pair = &own, .version = version}), row.own ? "" : bad);
      EXPECT_EQ(shake_hands(*context, {.pair = &trusted, .version = version}), row.trusted ? "" : bad);
    }
  }
}

TEST(ClientPolicy, ACertificateOfServersIsNoClients) {
  const pki::Pair ca = pki::ca();
  const pki::Pair of_server = pki::make({.purpose = GNUTLS_KP_TLS_WWW_SERVER}, &ca);
  const pki::Pair of_client = pki::make({.purpose = GNUTLS_KP_TLS_WWW_CLIENT}, &ca);
  TlsSettings settings = pki::settings(pki::make());
  settings.client_auth = ClientAuth::require_verified;
  settings.client_ca = ca.certificate;
  const auto context = context_of(settings);
  EXPECT_EQ(shake_hands(*context, {.pair = &of_server}), "alert: Certificate is bad");
  EXPECT_EQ(shake_hands(*context, {.pair = &of_client}), "");
}

TEST(ClientPolicy, AnEndedCertificateIsRejected) {
  const pki::Pair ca = pki::ca();
  const pki::Pair ended = pki::make({.not_after = 1'600'000'000}, &ca);
  TlsSettings settings = pki::settings(pki::make());
  settings.client_auth = ClientAuth::require_verified;
  settings.client_ca = ca.certificate;
  EXPECT_EQ(shake_hands(*context_of(settings), {.pair = &ended}), "alert: Certificate is bad");
}

TEST(ClientPolicy, AnyNameOfTheLeafIsCompared) {
  const pki::Pair ca = pki::ca();
  const pki::Pair client = pki::make({.names = {{GNUTLS_SAN_DNSNAME, "host.example"},
                                                {GNUTLS_SAN_RFC822NAME, "a@example"},
                                                {GNUTLS_SAN_IPADDRESS, {"\x7f\0\0\1", 4}},
                                                {GNUTLS_SAN_IPADDRESS, std::string(15, '\0') + '\1'},
                                                {GNUTLS_SAN_URI, "spiffe://cluster/scraper"}}},
                                     &ca);
  TlsSettings settings = pki::settings(pki::make());
  settings.client_auth = ClientAuth::require_verified;
  settings.client_ca = ca.certificate;
  for (const char* name : {"host.example", "a@example", "127.0.0.1", "::1", "spiffe://cluster/scraper"}) {
    settings.allowed_sans = {"other", name};
    EXPECT_EQ(shake_hands(*context_of(settings), {.pair = &client}), "") << name;
  }
  for (const char* name : {"Host.example", "host", "test", "example", "127.0.0.2"}) {
    settings.allowed_sans = {name};
    EXPECT_EQ(shake_hands(*context_of(settings), {.pair = &client}), "alert: Certificate is bad") << name;
  }
}

TEST(ClientPolicy, AListOfNamesAdmitsNobodyWithoutACertificate) {
  TlsSettings settings = pki::settings(pki::make());
  settings.client_auth = ClientAuth::verify_if_given;
  settings.allowed_sans = {"host.example"};
  EXPECT_EQ(shake_hands(*context_of(settings), {}), "alert: Certificate is required");
}

using testing::Each;
using testing::ElementsAreArray;
using testing::IsSupersetOf;
using testing::UnorderedElementsAreArray;

/// What a certificate's key can do.
struct Leaf {
  bool is_rsa = true;
  bool can_sign = true;
};

TlsSettings with_certificate(TlsSettings settings, const Leaf& leaf) {
  static std::map<std::pair<bool, bool>, pki::Pair> pairs;
  pki::Pair& pair = pairs[{leaf.is_rsa, leaf.can_sign}];
  if (pair.key.empty()) {
    pki::Request request = leaf.is_rsa ? pki::rsa() : pki::Request{};
    if (!leaf.can_sign) request.usage = GNUTLS_KEY_KEY_ENCIPHERMENT;
    pair = pki::make(request);
  }
  settings.certificate = pair.certificate;
  settings.key = pair.key;
  return settings;
}

TlsSettings listing(std::vector<std::string> suites, TlsVersion min = TlsVersion::tls12,
                    TlsVersion max = TlsVersion::tls13) {
  return {.min_version = min, .max_version = max, .cipher_suites = std::move(suites)};
}

std::shared_ptr<const TlsContext> offer_of(const TlsSettings& settings, const Leaf& leaf = {}) {
  return context_of(with_certificate(settings, leaf));
}

std::string refusal_of(const TlsSettings& settings, const Leaf& leaf = {}) {
  return error_of(with_certificate(settings, leaf));
}

/// The suites of TLS 1.2 that Go names, with their numbers in IANA's registry.
struct Suite {
  const char* name;
  std::uint16_t id;
};
constexpr Suite kOfRsa[] = {{"TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", 0xc013},
                            {"TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA", 0xc014},
                            {"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", 0xc02f},
                            {"TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", 0xc030},
                            {"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", 0xcca8}};
constexpr Suite kOfCurves[] = {{"TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA", 0xc009},
                               {"TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA", 0xc00a},
                               {"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", 0xc02b},
                               {"TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", 0xc02c},
                               {"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", 0xcca9}};

// Every subset of the five suites of a key: GnuTLS' products never add one.
TEST(TlsOffer, EverySubsetIsOfferedExactly) {
  for (const bool is_rsa : {true, false}) {
    const std::span<const Suite> all = is_rsa ? kOfRsa : kOfCurves;
    for (unsigned subset = 1; subset < 1U << all.size(); ++subset) {
      std::vector<std::string> names;
      std::vector<std::uint16_t> ids;
      for (std::size_t i = 0; i < all.size(); ++i) {
        if ((subset >> i & 1U) == 0) continue;
        names.emplace_back(all[i].name);
        ids.push_back(all[i].id);
      }
      const auto offer = offer_of(listing(names, TlsVersion::tls12, TlsVersion::tls12), {.is_rsa = is_rsa});
      EXPECT_THAT(offer->suites(), ElementsAreArray(ids)) << offer->priority();
      EXPECT_THAT(offer->warnings(), IsEmpty());
    }
  }
}

TEST(TlsOffer, TheListsOrderIsTheServersPreference) {
  const std::vector<std::string> names = {"TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
                                          "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"};
  TlsSettings settings = listing(names, TlsVersion::tls12, TlsVersion::tls12);
  EXPECT_THAT(offer_of(settings)->suites(), ElementsAre(0xc030, 0xc02f));
  EXPECT_THAT(offer_of(settings)->priority(), HasSubstr("%SERVER_PRECEDENCE"));
  settings.prefer_server_ciphers = false;
  EXPECT_THAT(offer_of(settings)->priority(), Not(HasSubstr("%SERVER_PRECEDENCE")));
}

TEST(TlsOffer, AllSuitesOfferThoseOfTheCertificatesKeyAndTls13) {
  const auto offer = offer_of(listing({kOfRsa[0].name, kOfRsa[1].name, kOfRsa[2].name, kOfRsa[3].name,
                                       kOfRsa[4].name, kOfCurves[2].name, "TLS_AES_128_GCM_SHA256",
                                       "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"}));
  EXPECT_THAT(offer->suites(),
              UnorderedElementsAreArray({0x1301, 0x1302, 0x1303, 0xc013, 0xc014, 0xc02f, 0xc030, 0xcca8}));
  EXPECT_THAT(offer->warnings(), IsEmpty());
}

TEST(TlsOffer, NamesOfTls13AreIgnored) {
  const auto offer = offer_of(listing({"TLS_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"}));
  EXPECT_THAT(offer->suites(), UnorderedElementsAreArray({0x1302, 0xc030}));
  const auto only_13 = offer_of(listing({"TLS_AES_128_GCM_SHA256"}, TlsVersion::tls13));
  EXPECT_THAT(only_13->suites(), UnorderedElementsAreArray({0x1301, 0x1302, 0x1303}));
}

TEST(TlsOffer, WithoutAFittingSuiteOnlyTls13Remains) {
  const auto offer = offer_of(listing({"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"}));
  EXPECT_THAT(offer->suites(), UnorderedElementsAreArray({0x1301, 0x1302, 0x1303}));
  EXPECT_THAT(offer->warnings(), ElementsAre(HasSubstr("only TLS 1.3 is offered")));
}

TEST(TlsOffer, WithoutAnAeadTls13IsNotOffered) {
  const auto offer = offer_of(listing({"TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA"}));
  EXPECT_THAT(offer->suites(), ElementsAre(0xc013));
  EXPECT_THAT(offer->warnings(), ElementsAre(HasSubstr("TLS 1.3 is not offered")));
}

TEST(TlsOffer, TheDefaultHasForwardSecrecyOnly) {
  const auto offer = offer_of({});
  EXPECT_THAT(offer->suites(), IsSupersetOf({0x1301, 0x1302, 0x1303, 0xc02b, 0xc02c, 0xc02f, 0xc030}));
  // TLS 1.3, ECDHE with GCM or CBC, ECDHE with CCM, ECDHE with ChaCha20.
  EXPECT_THAT(offer->suites(), Each(testing::Truly([](std::uint16_t id) {
                return id >> 8 == 0x13 || id >> 8 == 0xc0 || id >> 8 == 0xcc;
              })));
  EXPECT_THAT(offer->warnings(), IsEmpty());
}

TEST(TlsOffer, VersionsAreThoseBetweenTheLimits) {
  EXPECT_THAT(offer_of({.max_version = TlsVersion::tls12})->priority(), Not(HasSubstr("TLS1.3")));
  const std::string oldest = offer_of({.min_version = TlsVersion::tls10})->priority();
  for (const char* version : {"TLS1.0", "TLS1.1", "TLS1.2", "TLS1.3"})
    EXPECT_THAT(oldest, HasSubstr(version));
  EXPECT_EQ(refusal_of({.min_version = TlsVersion::tls13, .max_version = TlsVersion::tls12}),
            "min_version is above max_version");
}

TEST(TlsOffer, CurvesReplaceTheDefault) {
  EXPECT_THAT(offer_of({.curve_preferences = {"CurveP521", "X25519"}})->priority(),
              HasSubstr(":-GROUP-ALL:+GROUP-SECP521R1:+GROUP-X25519"));
  for (const auto& [name, group] :
       {std::pair("CurveP256", "GROUP-SECP256R1"), std::pair("CurveP384", "GROUP-SECP384R1"),
        std::pair("X25519", "GROUP-X25519")}) {
    EXPECT_THAT(offer_of({.curve_preferences = {name}})->priority(), HasSubstr(group));
  }
}

TEST(TlsOffer, UnknownNamesAreErrors) {
  EXPECT_EQ(refusal_of(listing({"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA2048"})),
            "unknown cipher: TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA2048");
  EXPECT_EQ(refusal_of(listing({"TLS_RSA_WITH_AES_128_GCM_SHA256"})),
            "unknown cipher: TLS_RSA_WITH_AES_128_GCM_SHA256");
  EXPECT_EQ(refusal_of({.curve_preferences = {"CurveP257"}}), "unknown curve: CurveP257");
}

TEST(TlsOffer, AListWithoutAFittingSuiteIsAnError) {
  const auto settings =
      listing({"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"}, TlsVersion::tls12, TlsVersion::tls12);
  EXPECT_EQ(refusal_of(settings, {.is_rsa = false}), "no suite of cipher_suites fits the certificate's key");
}

TEST(TlsOffer, ACertificateThatMustNotSignHasOnlyTheKeyExchangeRsa) {
  const Leaf enciphers{.can_sign = false};
  EXPECT_THAT(offer_of({}, enciphers)->suites(),
              testing::Contains(0x009d));  // TLS_RSA_WITH_AES_256_GCM_SHA384
  const std::string error =
      "the certificate's keyUsage lacks digitalSignature, which all offered cipher suites require";
  EXPECT_EQ(refusal_of(listing({"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"}), enciphers), error);
  EXPECT_EQ(refusal_of({.min_version = TlsVersion::tls13}, enciphers), error);
  EXPECT_EQ(refusal_of({}, {.is_rsa = false, .can_sign = false}), error);
}

}  // namespace
}  // namespace gpumeter
