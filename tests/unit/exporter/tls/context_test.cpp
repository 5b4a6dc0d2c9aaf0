#include "exporter/tls/context.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>

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
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::UnorderedElementsAreArray;

TlsSettings listing(std::vector<std::string> suites, TlsVersion min = TlsVersion::tls12,
                    TlsVersion max = TlsVersion::tls13) {
  return {.min_version = min, .max_version = max, .cipher_suites = std::move(suites)};
}

TlsOffer offer_of(const TlsSettings& settings, const LeafFacts& leaf = {}) {
  Result<TlsOffer> offer = make_offer(settings, leaf);
  if (offer) return *std::move(offer);
  ADD_FAILURE() << offer.error().message();
  return {};
}

std::string refusal_of(const TlsSettings& settings, const LeafFacts& leaf = {}) {
  const Result<TlsOffer> offer = make_offer(settings, leaf);
  return offer ? "offers " + offer->text : offer.error().message();
}

std::vector<std::string> all_names() {
  std::vector<std::string> names;
  for (const CipherSuite& suite : kCipherSuites) names.emplace_back(suite.name);
  return names;
}

TEST(TlsOffer, EverySuiteAloneIsOfferedAlone) {
  for (const CipherSuite& suite : kCipherSuites) {
    if (!suite.key) continue;
    const TlsOffer offer = offer_of(listing({std::string(suite.name)}, TlsVersion::tls12, TlsVersion::tls12),
                                    {.key = *suite.key});
    EXPECT_THAT(offer.suites, ElementsAre(suite.id)) << offer.text;
    EXPECT_THAT(offer.warnings, IsEmpty());
  }
}

// Every subset of the five suites of a key: GnuTLS' products never add one.
TEST(TlsOffer, EverySubsetIsOfferedExactly) {
  for (const KeyKind key : {KeyKind::rsa, KeyKind::elliptic}) {
    std::vector<const CipherSuite*> all;
    for (const CipherSuite& suite : kCipherSuites) {
      if (suite.key == key) all.push_back(&suite);
    }
    ASSERT_EQ(all.size(), 5U);
    for (unsigned subset = 1; subset < 1U << all.size(); ++subset) {
      std::vector<std::string> names;
      std::vector<std::uint16_t> ids;
      for (std::size_t i = 0; i < all.size(); ++i) {
        if ((subset >> i & 1U) == 0) continue;
        names.emplace_back(all[i]->name);
        ids.push_back(all[i]->id);
      }
      const TlsOffer offer = offer_of(listing(names, TlsVersion::tls12, TlsVersion::tls12), {.key = key});
      EXPECT_THAT(offer.suites, ElementsAreArray(ids)) << offer.text;
    }
  }
}

TEST(TlsOffer, TheListsOrderIsTheServersPreference) {
  const std::vector<std::string> names = {"TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
                                          "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"};
  TlsSettings settings = listing(names, TlsVersion::tls12, TlsVersion::tls12);
  EXPECT_THAT(offer_of(settings).suites, ElementsAre(0xc030, 0xc02f));
  EXPECT_THAT(offer_of(settings).text, HasSubstr("%SERVER_PRECEDENCE"));
  settings.prefer_server_ciphers = false;
  EXPECT_THAT(offer_of(settings).text, Not(HasSubstr("%SERVER_PRECEDENCE")));
}

TEST(TlsOffer, AllSuitesOfferThoseOfTheCertificatesKeyAndTls13) {
  const TlsOffer offer = offer_of(listing(all_names()), {.key = KeyKind::rsa});
  EXPECT_THAT(offer.suites,
              UnorderedElementsAreArray({0x1301, 0x1302, 0x1303, 0xc013, 0xc014, 0xc02f, 0xc030, 0xcca8}));
  EXPECT_THAT(offer.warnings, IsEmpty());
}

TEST(TlsOffer, NamesOfTls13AreIgnored) {
  const TlsOffer offer =
      offer_of(listing({"TLS_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"}));
  EXPECT_THAT(offer.suites, UnorderedElementsAreArray({0x1302, 0xc030}));
  const TlsOffer only_13 = offer_of(listing({"TLS_AES_128_GCM_SHA256"}, TlsVersion::tls13));
  EXPECT_THAT(only_13.suites, UnorderedElementsAreArray({0x1301, 0x1302, 0x1303}));
}

TEST(TlsOffer, WithoutAFittingSuiteOnlyTls13Remains) {
  const TlsOffer offer = offer_of(listing({"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"}));
  EXPECT_THAT(offer.suites, UnorderedElementsAreArray({0x1301, 0x1302, 0x1303}));
  EXPECT_THAT(offer.warnings, ElementsAre(HasSubstr("only TLS 1.3 is offered")));
}

TEST(TlsOffer, WithoutAnAeadTls13IsNotOffered) {
  const TlsOffer offer = offer_of(listing({"TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA"}));
  EXPECT_THAT(offer.suites, ElementsAre(0xc013));
  EXPECT_THAT(offer.warnings, ElementsAre(HasSubstr("TLS 1.3 is not offered")));
}

TEST(TlsOffer, TheDefaultHasForwardSecrecyOnly) {
  const TlsOffer offer = offer_of({});
  EXPECT_THAT(offer.suites, IsSupersetOf({0x1301, 0x1302, 0x1303, 0xc02b, 0xc02c, 0xc02f, 0xc030}));
  // TLS 1.3, ECDHE with GCM or CBC, ECDHE with CCM, ECDHE with ChaCha20.
  EXPECT_THAT(offer.suites, Each(testing::Truly([](std::uint16_t id) {
                return id >> 8 == 0x13 || id >> 8 == 0xc0 || id >> 8 == 0xcc;
              })));
  EXPECT_THAT(offer.warnings, IsEmpty());
}

TEST(TlsOffer, VersionsAreThoseBetweenTheLimits) {
  EXPECT_THAT(offer_of({.max_version = TlsVersion::tls12}).text, Not(HasSubstr("TLS1.3")));
  const std::string oldest = offer_of({.min_version = TlsVersion::tls10}).text;
  for (const char* version : {"TLS1.0", "TLS1.1", "TLS1.2", "TLS1.3"})
    EXPECT_THAT(oldest, HasSubstr(version));
  EXPECT_EQ(refusal_of({.min_version = TlsVersion::tls13, .max_version = TlsVersion::tls12}),
            "min_version is above max_version");
}

TEST(TlsOffer, CurvesReplaceTheDefault) {
  EXPECT_THAT(offer_of({.curve_preferences = {"CurveP521", "X25519"}}).text,
              HasSubstr(":-GROUP-ALL:+GROUP-SECP521R1:+GROUP-X25519"));
  for (const Curve& curve : kCurves) {
    EXPECT_THAT(offer_of({.curve_preferences = {std::string(curve.name)}}).text, HasSubstr(curve.group));
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
  EXPECT_EQ(refusal_of(settings, {.key = KeyKind::elliptic}),
            "no suite of cipher_suites fits the certificate's key");
}

TEST(TlsOffer, ACertificateThatMustNotSignHasOnlyTheKeyExchangeRsa) {
  const LeafFacts enciphers{.can_sign = false};
  EXPECT_THAT(offer_of({}, enciphers).suites, testing::Contains(0x009d));  // TLS_RSA_WITH_AES_256_GCM_SHA384
  const std::string error =
      "the certificate's keyUsage lacks digitalSignature, which all offered cipher suites require";
  EXPECT_EQ(refusal_of(listing({"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"}), enciphers), error);
  EXPECT_EQ(refusal_of({.min_version = TlsVersion::tls13}, enciphers), error);
  EXPECT_EQ(refusal_of({}, {.key = KeyKind::elliptic, .can_sign = false}), error);
}

}  // namespace
}  // namespace gpumeter
