#pragma once

#include <memory>

#include "exporter/access/settings.hpp"

namespace gpumeter {

class TlsContext;  // exporter/tls/context.hpp

/// One state of the web configuration, never changed. It lives as long as an answer or a connection uses it.
struct WebGeneration {
  WebSettings settings;
  std::shared_ptr<const TlsContext> tls;  ///< null: plain HTTP
};

}  // namespace gpumeter
