#pragma once

#include <sys/socket.h>

#include <memory>
#include <utility>

#include "base/result.hpp"
#include "exporter/http/connections.hpp"
#include "exporter/tls/context.hpp"
#include "exporter/tls/loopback.hpp"

struct MHD_Connection;

namespace gpumeter {

class WebAccess;

/// The context in force of each moment; empty if the settings in force have no TLS. `access` may be null and
/// must outlive the source.
TlsSource tls_source_of(const WebAccess* access);

/// Prepares the TLS sessions of a server's connections. HTTP threads.
class TlsSessions {
 public:
  /// An empty source: plain HTTP. No function of GnuTLS is called then.
  explicit TlsSessions(TlsSource source) : source_(std::move(source)) {}

  /// Once, before the first connection.
  Result<Done> prepare();
  bool is_on() const noexcept { return source_ != nullptr; }
  const TlsLoopback* loopback() const noexcept { return loopback_.get(); }

  /// Called before the handshake. The connection holds the context until it is closed. If the session is not
  /// prepared, its handshake fails.
  void open(MHD_Connection* connection, const sockaddr* peer, HttpConnection& entry) const;

 private:
  const TlsSource source_;
  std::unique_ptr<const TlsLoopback> loopback_;
};

}  // namespace gpumeter
