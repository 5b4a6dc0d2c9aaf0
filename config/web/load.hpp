#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/options.hpp"
#include "exporter/access/settings.hpp"

/// The web configuration file, in the format of Prometheus' exporters
/// (github.com/prometheus/exporter-toolkit, docs/web-configuration.md).
namespace gpumeter::config::web {

using options::Problem;

struct LoadedWeb {
  WebSettings settings;
  std::vector<std::string> notes;  ///< settings that are accepted and have no effect, one sentence each
};

/// The settings, or all problems of the first check that failed.
using Loaded = std::variant<LoadedWeb, std::vector<Problem>>;

/// Reads a web configuration and the files that it names. Relative paths are relative to the folder of
/// `file`. Checks in the order of exporter-toolkit: YAML and keys, headers, users, certificate and key,
/// client CA, client policy. Pair, ciphers and curves are checked by the TLS library. `files`, unless null,
/// becomes the list of all files that the result depends on, the configuration first. Blocks for the file
/// system.
Loaded load_file(const std::string& file, std::vector<std::string>* files = nullptr);

/// Reads the text of a web configuration in the same way.
Loaded load_text(std::string_view text, const std::string& file, std::vector<std::string>* files = nullptr);

}  // namespace gpumeter::config::web
