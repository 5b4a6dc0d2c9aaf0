#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/options.hpp"
#include "base/result.hpp"
#include "collectors/api/catalog.hpp"

namespace gpumeter::servers {

/// A page of a server.
struct Target {
  std::string host;  ///< a name or a number, without brackets
  std::string port;
  std::string path = "/metrics";
  std::string text;  ///< as configured, for messages
  bool is_tls = false;

  bool operator==(const Target& other) const { return text == other.text; }
};

/// Parses "http://host:port/path" or https; without a path, "/metrics".
Result<Target> parse_target(std::string_view text);

/// Model servers whose metrics pages are read.
struct Settings {
  bool enabled = false;
  /// Of vLLM, Triton, llama.cpp, SGLang and TGI, by default. Only these are read: another port may belong to
  /// a protocol that a GET disturbs.
  std::vector<options::Port> ports = {{8000}, {8002}, {8080}, {30000}, {3000}};
  std::vector<std::string> processes;  ///< names; empty: any
  std::vector<Target> targets;         ///< read also if not enabled
  bool operator==(const Settings&) const = default;
};

/// `servers` in the configuration.
extern const options::Section kSection;

/// What the program exports of each model server.
inline constexpr const MetricDescriptor* kFamilies[] = {&catalog::ml_server_up,
                                                        &catalog::ml_server_info,
                                                        &catalog::ml_server_tokens,
                                                        &catalog::ml_server_requests,
                                                        &catalog::ml_server_requests_running,
                                                        &catalog::ml_server_requests_waiting,
                                                        &catalog::ml_server_time_to_first_token,
                                                        &catalog::ml_server_cache_utilization,
                                                        &catalog::ml_server_energy};

}  // namespace gpumeter::servers
