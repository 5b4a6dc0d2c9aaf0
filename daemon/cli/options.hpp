#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "collectors/api/collector.hpp"
#include "daemon/control/allocate.hpp"

namespace gpumeter {

inline constexpr std::string_view kDefaultConfigFile = "/etc/gpumeter/gpumeter.yaml";

/// The purpose of the process. All actions except `run` end by themselves.
enum class Action : std::uint8_t {
  run,
  once,
  check_config,
  reload,
  list_devices,
  print_metrics,
  print_config,
  print_conditions,
  forget,
  allocate,
  check
};

/// The values of a flag for a key of the configuration.
struct KeyOverride {
  std::string path;
  std::vector<std::string> values;
};

/// What --fail-on makes of degraded GPUs.
enum class FailOn : std::uint8_t {
  each,      ///< degraded: warning; failed: critical
  failed,    ///< degraded counts as ok
  degraded,  ///< degraded counts as critical
};

/// The flags of `gpumeter check`.
struct CheckOptions {
  bool json = false;
  std::optional<unsigned> gpu;  ///< nullopt: all
  FailOn fail_on = FailOn::each;
  std::string url;         ///< empty: the first address of web.listen
  std::string ca_file;     ///< empty: the system's authorities
  std::string login_file;  ///< empty: no user
};

/// The validated command line.
struct Options {
  Action action = Action::run;
  std::string argument;     ///< of the action: "0" (--once), a process id (--reload), a format (--print-...),
                            ///< a uuid (forget)
  std::string config_file;  ///< empty: the default file, which need not exist
  bool systemd_socket = false;               ///< serve on systemd's sockets instead of web.listen
  bool disable_defaults = false;             ///< run only collectors that are enabled explicitly
  std::vector<KeyOverride> overrides;        ///< override the file's values
  std::string simulator;                     ///< the collector for --simulate; empty: there is none
  std::vector<std::string> simulate_events;  ///< in addition to the file's
  CheckOptions check;
  AllocateOptions allocate;
};

/// An exit before the start. The text goes to stdout if the code is 0 (help, version), otherwise to stderr.
struct Exit {
  int code;
  std::string text;
};

/// Parses the command line. Each of `collectors` has its own flags.
std::variant<Options, Exit> parse_options(int argc, const char* const* argv,
                                          std::span<const CollectorEntry> collectors);

}  // namespace gpumeter
