#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/options.hpp"
#include "config/yaml_tree.hpp"
#include "exporter/access/settings.hpp"

namespace gpumeter::config::web {

using options::Complaint;
using options::enumerate;
using options::must_be;
using options::Places;
using options::printable;
using options::Problem;

/// The values of the file before the checks that relate them.
struct Fields {
  std::string cert, cert_file, key, key_file, client_ca, client_ca_file;
  std::string client_auth_type;
  TlsSettings tls;  ///< without PEM contents and client_auth
  bool has_tls_section = false;
  bool http2 = false;
  std::vector<std::pair<std::string, std::string>> headers;
  std::map<std::string, std::string> users;
  RateLimit rate_limit;
  Places places;  ///< keys by full path; a user and a header by its name below its section
};

/// Reads the keys. Unknown keys, duplicates and values of a wrong type are added to `problems`.
Fields read_fields(const Node& root, const std::string& file, std::vector<Problem>& problems);

}  // namespace gpumeter::config::web
