#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>

#include "exporter/tls/context.hpp"

namespace gpumeter {
namespace {

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

std::string error_of(const TlsSettings& settings, const LeafFacts& leaf = {}) {
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
  EXPECT_EQ(error_of({.min_version = TlsVersion::tls13, .max_version = TlsVersion::tls12}),
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
  EXPECT_EQ(error_of(listing({"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA2048"})),
            "unknown cipher: TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA2048");
  EXPECT_EQ(error_of(listing({"TLS_RSA_WITH_AES_128_GCM_SHA256"})),
            "unknown cipher: TLS_RSA_WITH_AES_128_GCM_SHA256");
  EXPECT_EQ(error_of({.curve_preferences = {"CurveP257"}}), "unknown curve: CurveP257");
}

TEST(TlsOffer, AListWithoutAFittingSuiteIsAnError) {
  const auto settings =
      listing({"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"}, TlsVersion::tls12, TlsVersion::tls12);
  EXPECT_EQ(error_of(settings, {.key = KeyKind::elliptic}),
            "no suite of cipher_suites fits the certificate's key");
}

TEST(TlsOffer, ACertificateThatMustNotSignHasOnlyTheKeyExchangeRsa) {
  const LeafFacts enciphers{.can_sign = false};
  EXPECT_THAT(offer_of({}, enciphers).suites, testing::Contains(0x009d));  // TLS_RSA_WITH_AES_256_GCM_SHA384
  const std::string error =
      "the certificate's keyUsage lacks digitalSignature, which all offered cipher suites require";
  EXPECT_EQ(error_of(listing({"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"}), enciphers), error);
  EXPECT_EQ(error_of({.min_version = TlsVersion::tls13}, enciphers), error);
  EXPECT_EQ(error_of({}, {.key = KeyKind::elliptic, .can_sign = false}), error);
}

}  // namespace
}  // namespace gpumeter
