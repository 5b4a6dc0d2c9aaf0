#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/options.hpp"
#include "exporter/access/settings.hpp"

/// The web configuration file, in the format of Prometheus' exporters
/// (github.com/prometheus/exporter-toolkit, docs/web-configuration.md). Complaints are worded after
/// exporter-toolkit's errors.
namespace gpumeter::config::web {

struct Loaded {
  WebSettings settings = {};  ///< in force only if there are no problems; `tls` if its section has none
  std::vector<options::Problem> problems = {};  ///< all of the file, by line
  std::vector<std::string> notes = {};          ///< settings that have no effect, one sentence each
  std::vector<std::string> files = {};  ///< all files that the outcome depends on, the configuration first
  options::Places places = {};
};

/// Reads a web configuration and the files that it names. Relative paths are relative to the folder of
/// `file`. TlsContext checks certificate, key and CA afterwards. Blocks for the file system.
Loaded load_file(const std::string& file);

/// Reads the text of a web configuration in the same way.
Loaded load_text(std::string_view text, const std::string& file);

/// Parses a duration as Go's time.ParseDuration does: a sign, then numbers of ns, us, µs, ms, s, m and h,
/// such as "1.5h" or "2m30s". "0" needs no unit. Returns nullopt for other texts and for more than 290 years.
std::optional<Nanoseconds> parse_go_duration(std::string_view text) noexcept;

}  // namespace gpumeter::config::web
