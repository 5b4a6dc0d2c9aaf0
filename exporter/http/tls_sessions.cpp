#include "exporter/http/tls_sessions.hpp"

#include <microhttpd.h>

#include "exporter/access/access.hpp"

namespace gpumeter {

TlsSource tls_source_of(const WebAccess* access) {
  if (access == nullptr || access->current()->tls == nullptr) return {};
  return [access] { return access->current()->tls; };
}

Result<Done> TlsSessions::prepare() {
  if (!is_on()) return Done{};
  auto loopback = TlsLoopback::make();
  if (!loopback) return loopback.error().with("TLS of the daemon's own probe");
  loopback_ = *std::move(loopback);
  return Done{};
}

void TlsSessions::open(MHD_Connection* connection, const sockaddr* peer, HttpConnection& entry) const {
  const MHD_ConnectionInfo* info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
  if (info == nullptr) return;
  auto* const session = static_cast<gnutls_session_int*>(info->tls_session);
  if (peer != nullptr && peer->sa_family == kProbeAddress.sa_family) {
    loopback_->apply(session);
    return;
  }
  std::shared_ptr<const TlsContext> context = source_();
  if (context != nullptr && context->apply(session)) entry.hold(std::move(context));
}

}  // namespace gpumeter
