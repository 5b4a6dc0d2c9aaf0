#pragma once

#include <string>
#include <vector>

#include "base/options.hpp"

namespace gpumeter {

/// `web` in the configuration.
struct HttpSettings {
  std::vector<std::string> listen = {"localhost:10478"};  ///< "host:port"; ":port" means all addresses
  std::string config_file;  ///< TLS, users and headers, as Prometheus' exporters have them; empty: none
  std::string telemetry_path = "/metrics";
  unsigned max_requests = 40;  ///< pages under way at the same time; 0: no limit. As node_exporter's flag.
  bool operator==(const HttpSettings&) const = default;
};
extern const options::Section kWebSection;

}  // namespace gpumeter
