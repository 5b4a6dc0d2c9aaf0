#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/load.hpp"
#include "config/schema.hpp"

namespace gpumeter {

inline constexpr std::string_view kDefaultConfigFile = "/etc/gpumeter/gpumeter.yaml";

/// What the process is started for. All but `run` end by themselves.
enum class Action : std::uint8_t {
  run,
  once,
  check_config,
  reload,
  list_devices,
  print_metrics,
  print_config
};

/// A flag that stands for a key of the configuration.
struct KeyOverride {
  std::string path;
  std::vector<std::string> values;
};

/// The command line, checked.
struct Options {
  Action action = Action::run;
  int passes = 2;               ///< of --once; 1: a single pass, without values that need two readings
  std::string print_format;     ///< "markdown" or "text", of --print-metrics and --print-config
  int daemon = 0;               ///< process id, of --reload
  std::string config_file;      ///< empty: the default file, which need not exist
  bool systemd_socket = false;  ///< serve on systemd's sockets instead of web.listen
  std::vector<KeyOverride> overrides;
  std::map<std::string, bool> collectors;  ///< switched on or off by name
  bool disable_defaults = false;           ///< collectors are off unless switched on
  std::optional<unsigned> simulate;        ///< this many simulated devices and no others
  std::vector<std::string> simulate_events;
};

/// An end before the start: the text belongs on stdout where the code is 0 (help, version), else on stderr.
struct Exit {
  int code;
  std::string text;
};

/// Reads the command line. `schemas` are the known collectors, each with its flags.
std::variant<Options, Exit> parse_options(int argc, const char* const* argv, config::Schemas schemas);

/// Flags go before the file.
void apply(const Options& options, config::Config& config);

/// The configuration of these options: the file that they name, which must exist, or the default file where
/// it exists, or the defaults; with the flags applied. For the start and for every reload.
/// `places`, unless null, is filled in.
config::Loaded load_config(const Options& options, config::Schemas schemas, config::Places* places = nullptr);

}  // namespace gpumeter
