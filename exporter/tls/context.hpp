#pragma once

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/result.hpp"
#include "exporter/access/settings.hpp"

namespace gpumeter {

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

/// Whether `cipher_suites` and `curve_preferences` may have the name.
bool knows_cipher_suite(std::string_view name) noexcept;
bool knows_curve(std::string_view name) noexcept;

/// The TLS side of one generation of the web configuration: certificate, key, CA, versions, cipher suites and
/// the policy for clients. Immutable; any thread. A connection holds the context that it was opened with, so
/// a replaced certificate takes effect with the next connection.
class TlsContext {
 public:
  /// The Error states which keys of `tls_server_config` are wrong, and never contains the private key.
  static Result<std::shared_ptr<const TlsContext>> make(const TlsSettings& settings);

  /// Prepares a server's session before its handshake; the context must outlive the session. Returns false if
  /// GnuTLS refuses; the handshake then must not take place.
  bool apply(gnutls_session_t session) const noexcept;

  /// When the server's certificate ends, as Unix time.
  std::int64_t not_after() const noexcept { return not_after_; }
  /// Sentences for the log about settings that work only partly.
  const std::vector<std::string>& warnings() const noexcept { return warnings_; }
  /// Versions, suites and groups that are offered, in the syntax of GnuTLS' priority strings.
  const std::string& priority() const noexcept { return text_; }
  /// The suites that are offered, by their numbers in IANA's registry, in the order of preference.
  const std::vector<std::uint16_t>& suites() const noexcept { return suites_; }

 private:
  static int verify(gnutls_session_t session) noexcept;
  bool admits(gnutls_session_t session) const;

  GnutlsCredentials credentials_;
  GnutlsPriority priority_;
  std::string text_;
  std::vector<std::uint16_t> suites_;
  std::vector<std::string> warnings_;
  std::int64_t not_after_ = 0;
  ClientAuth auth_ = ClientAuth::none;
  std::vector<std::string> allowed_sans_;
};

}  // namespace gpumeter
