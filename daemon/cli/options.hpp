#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/command_line.hpp"
#include "collectors/api/collector.hpp"
#include "collectors/attribution/names/user_names.hpp"
#include "config/config.hpp"

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
  print_events,
  print_otlp,
  command  ///< a command of gpumeter-commands
};

/// The values of a flag for a key of the configuration.
struct KeyOverride {
  std::string path;
  std::vector<std::string> values;
};

/// The validated command line.
struct Options {
  Action action = Action::run;
  std::string argument;     ///< of the action: "0" (--once), a process id (--reload), a format (--print-...)
  std::string config_file;  ///< empty: the default file, which need not exist
  bool systemd_socket = false;               ///< serve on systemd's sockets instead of web.listen
  bool disable_defaults = false;             ///< run only collectors that are enabled explicitly
  std::vector<KeyOverride> overrides;        ///< override the file's values
  std::string simulator;                     ///< the collector for --simulate; empty: there is none
  std::vector<std::string> simulate_events;  ///< in addition to the file's
};

/// A word that is no flag's value and no command.
Exit unexpected(const std::string& word);

/// All flags of the daemon. Each of `collectors` has its own.
std::vector<Flag> flags_of(std::span<const CollectorEntry> collectors);

/// Converts a command line with these flags, whose words the caller takes. Help is not printed.
std::variant<Options, Exit> options_of(const CommandLine& line, std::span<const CollectorEntry> collectors);

/// Parses the command line of the daemon, which has flags only.
std::variant<Options, Exit> parse_options(int argc, const char* const* argv,
                                          std::span<const CollectorEntry> collectors);

/// Applies the flags, which override the file.
void apply(const Options& options, const config::Schema& schema, config::Config& config);

/// Returns the configuration with the flags applied. The options may name a file, which must exist. Otherwise
/// the default file is used if it exists, and otherwise the defaults.
config::Loaded load_config(const Options& options, const config::Schema& schema);

/// Calls load_config() for the built-in collectors, then checks the collectors' own keys, the names of
/// families, the web configuration and whether the users of `jobs.users` exist, also if the file has other
/// problems. The users' uids are added to the list, so that the list works while the name
/// service is down. Users whose lookup fails are accepted; `notes` names them. For the start and for every
/// reload. Waits for the name service for at most KnownUsers::kPatience.
config::Loaded load_checked(const Options& options, const Clock& clock, jobs::KnownUsers& users,
                            std::vector<std::string>& notes);

}  // namespace gpumeter
