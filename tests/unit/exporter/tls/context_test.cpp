#include "exporter/tls/context.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace gpumeter
