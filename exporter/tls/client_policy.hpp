#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "exporter/access/settings.hpp"
#include "exporter/tls/handles.hpp"

namespace gpumeter {

/// Decides in the handshake which clients may connect. Must outlive the sessions that it was applied to.
class ClientPolicy {
 public:
  ClientPolicy(ClientAuth auth, std::vector<std::string> allowed_sans)
      : auth_(auth), allowed_sans_(std::move(allowed_sans)) {}

  /// Before the handshake of a server's session. GnuTLS then calls the policy on the session's thread.
  void apply(gnutls_session_t session) const noexcept;

 private:
  static int verify(gnutls_session_t session) noexcept;
  bool admits(gnutls_session_t session) const;

  const ClientAuth auth_;
  const std::vector<std::string> allowed_sans_;
};

/// The DNS names, e-mail addresses, IP addresses and URIs of the subjectAltName, IP addresses as text.
/// `der` is a certificate; the result is empty if it cannot be read.
std::vector<std::string> subject_alt_names(const gnutls_datum_t& der);

}  // namespace gpumeter
