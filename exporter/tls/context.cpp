#include "exporter/tls/context.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "exporter/tls/certificate.hpp"
#include "exporter/tls/client_policy.hpp"
#include "exporter/tls/priority.hpp"

namespace gpumeter {
namespace {

bool is_verified(ClientAuth auth) {
  return auth == ClientAuth::verify_if_given || auth == ClientAuth::require_verified;
}

std::vector<std::string> policy_warnings(const TlsSettings& settings) {
  std::vector<std::string> warnings;
  if (!settings.allowed_sans.empty() && !is_verified(settings.client_auth)) {
    warnings.emplace_back(
        "client_allowed_sans without a verifying client_auth_type: any client can issue itself a certificate "
        "with these names");
  }
  if (is_verified(settings.client_auth) && settings.client_ca.empty()) {
    warnings.emplace_back("no client CA is configured: every client certificate is rejected");
  }
  return warnings;
}

void append(std::vector<std::string>& to, std::vector<std::string> more) {
  std::ranges::move(more, std::back_inserter(to));
}

}  // namespace

struct TlsContext::Parts {
  LoadedCertificate certificate;
  TlsOffer offer;
  ClientPolicy policy;
  std::vector<std::string> warnings;
};

TlsContext::TlsContext(std::unique_ptr<const Parts> parts) : parts_(std::move(parts)) {}
TlsContext::~TlsContext() = default;

Result<std::shared_ptr<const TlsContext>> TlsContext::make(const TlsSettings& settings) {
  if (!settings.allowed_sans.empty() && settings.client_auth == ClientAuth::none) {
    return Error("client_allowed_sans requires a client_auth_type that requests a certificate");
  }
  Result<LoadedCertificate> certificate = load_certificate(settings);
  if (!certificate) return certificate.error();
  Result<TlsOffer> offer = make_offer(settings, certificate->leaf);
  if (!offer) return offer.error();
  std::vector<std::string> warnings = warnings_of(certificate->leaf);
  append(warnings, offer->warnings);
  append(warnings, policy_warnings(settings));
  auto parts = std::make_unique<const Parts>(Parts{*std::move(certificate), *std::move(offer),
                                                   ClientPolicy(settings.client_auth, settings.allowed_sans),
                                                   std::move(warnings)});
  return std::shared_ptr<const TlsContext>(new TlsContext(std::move(parts)));
}

bool TlsContext::apply(gnutls_session_int* session) const noexcept {
  if (gnutls_priority_set(session, parts_->offer.priority.get()) < 0) return false;
  if (gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, parts_->certificate.credentials.get()) < 0) {
    return false;
  }
  parts_->policy.apply(session);
  return true;
}

std::int64_t TlsContext::not_after() const noexcept { return parts_->certificate.leaf.not_after; }
const std::vector<std::string>& TlsContext::warnings() const noexcept { return parts_->warnings; }
std::string_view TlsContext::priority() const noexcept { return parts_->offer.text; }

}  // namespace gpumeter
