#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "exporter/access/settings.hpp"

struct gnutls_session_int;

namespace gpumeter {

/// The TLS side of one generation of the web configuration: certificate, key, CA, versions, cipher suites and
/// the policy for clients. Immutable; any thread. A connection holds the context that it was opened with, so
/// a replaced certificate takes effect with the next connection.
class TlsContext {
 public:
  /// The Error states which key of `tls_server_config` is wrong, and never contains the private key.
  static Result<std::shared_ptr<const TlsContext>> make(const TlsSettings& settings);
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;
  ~TlsContext();

  /// Prepares a server's session before its handshake; the context must outlive the session. Returns false if
  /// GnuTLS refuses; the handshake then must not take place.
  bool apply(gnutls_session_int* session) const noexcept;

  /// When the server's certificate ends, as Unix time.
  std::int64_t not_after() const noexcept;
  /// Sentences for the log about settings that work only partly.
  const std::vector<std::string>& warnings() const noexcept;
  /// Versions, suites and groups, in the syntax of GnuTLS' priority strings.
  std::string_view priority() const noexcept;

 private:
  struct Parts;
  explicit TlsContext(std::unique_ptr<const Parts> parts);

  const std::unique_ptr<const Parts> parts_;
};

}  // namespace gpumeter
