#include "daemon/cli/options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "base/text.hpp"
#include "build_info.hpp"
#include "config/keys.hpp"
#include "daemon/cli/commands/commands.hpp"
#include "daemon/cli/commands/words.hpp"
#include "daemon/setup.hpp"

namespace gpumeter {
namespace {

/// A flag for a key of the configuration. The key's own check validates the value.
struct KeyFlag {
  const char* name;
  const char* path;
  const char* value;  ///< name of the value in --help
  bool is_file;       ///< relative to the current directory
  const char* help;
};
constexpr KeyFlag kKeyFlags[] = {
    {"--web.listen-address", "web.listen", "HOST:PORT", false,
     "Listen address, or unix:/PATH; repeatable (default localhost:10478)"},
    {"--web.config.file", "web.config_file", "FILE", true,
     "File with TLS, users and headers, as other exporters have"},
    {"--web.telemetry-path", "web.telemetry_path", "PATH", false,
     "Path of the metrics page (default /metrics)"},
    {"--metrics.detail", "metrics.detail", "DETAIL", false,
     "Series of the metrics page: standard (default) or full"},
    {"--path.sysfs", "paths.sysfs", "DIR", true, "Mount point of sysfs (default /sys)"},
    {"--path.procfs", "paths.procfs", "DIR", true, "Mount point of procfs (default /proc)"},
    {"--path.state", "paths.state", "DIR", true, "State folder (default /var/lib/gpumeter)"},
    {"--path.api", "paths.api", "FILE", true,
     "Socket for programs beside the daemon (default /run/gpumeter/api.sock)"},
    {"--log.level", "log.level", "LEVEL", false, "debug, info (default), warn or error"},
    {"--log.format", "log.format", "FORMAT", false, "auto (default), logfmt or json"},
};

struct ActionFlag {
  const char* name;
  Action action;
  const char* value;               ///< name of the value in --help; empty: the flag has none
  std::vector<std::string> words;  ///< the allowed values; empty: a process id
  const char* help;
};
const std::vector<ActionFlag>& action_flags() {
  static const std::vector<ActionFlag> kFlags = {
      {"--check-config", Action::check_config, "", {}, "Print all errors in the configuration"},
      {"--reload", Action::reload, "PID", {}, "Reload a daemon's configuration; exit 1 if it is rejected"},
      {"--once",
       Action::once,
       "0|1",
       {"0", "1"},
       "Print one page, after two passes one second apart or one pass (0)"},
      {"--list-devices", Action::list_devices, "", {}, "Print the devices found"},
      {"--print-metrics",
       Action::print_metrics,
       "FORMAT",
       {"markdown", "text"},
       "Print every metric (markdown, text)"},
      {"--print-config",
       Action::print_config,
       "FORMAT",
       {"markdown"},
       "Print every configuration key (markdown)"},
      {"--print-conditions",
       Action::print_conditions,
       "FORMAT",
       {"markdown", "json"},
       "Print the conditions that make a GPU degraded or failed (markdown, json)"},
  };
  return kFlags;
}

constexpr const char* kKeyGroup = "Configuration (overrides the file)";
constexpr const char* kCollectorGroup = "Collectors";
constexpr const char* kActionGroup = "Instead of running";

std::string version_text() {
  return std::string("gpumeter, version ") + build::kVersion + " (branch: " + build::kBranch +
         ", revision: " + build::kRevision + ")\n  compiler:         " + build::kCompiler + "\n";
}

/// Removes the value that CLI11 prints after the name of a negated flag: "--no-collector.amd{false}".
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    std::string name = CLI::Formatter::make_option_name(option, is_positional);
    constexpr std::string_view kNegated = "{false}";
    if (const auto at = name.find(kNegated); at != std::string::npos) name.erase(at, kNegated.size());
    return name;
  }
};

/// Defines the flags of gpumeter and converts them to Options.
class CommandLine {
 public:
  explicit CommandLine(std::span<const CollectorEntry> collectors)
      : schema_(schema_of(collectors)), keys_(config::keys(schema_)) {
    app_.formatter(std::make_shared<HelpFormatter>());
    app_.get_formatter()->column_width(36);
    app_.allow_extras();
    // The last value wins, so that a unit's drop-in can override the unit.
    app_.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    add_key_flags();
    add_collector_flags(collectors);
    add_action_flags();
    commands_.emplace(app_, options_);  // they take over how the flags are read
  }

  std::variant<Options, Exit> parse(int argc, const char* const* argv) try {
    app_.parse(argc, argv);
    if (const auto extras = app_.remaining(); !extras.empty())
      return usage_error(unknown_flag(extras.front()));
    if (is_there("--version")) return Exit{0, version_text()};
    if (auto exit = take_keys()) return *exit;
    if (auto exit = take_collectors()) return *exit;
    if (auto exit = take_action()) return *exit;
    if (auto exit = commands_->take(options_)) return *exit;
    return std::move(options_);
  } catch (const CLI::CallForHelp&) {
    return Exit{0, app_.help()};
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string text = error.what();  // "--flag: 1 required ... missing"
    return usage_error(text.substr(0, text.find(':')) + " requires a value");
  } catch (const CLI::ParseError& error) {
    return usage_error(error.what());
  }

 private:
  /// Each option takes one value. The next argument must be a flag; anything else is an error.
  CLI::Option* add(const std::string& name, const std::string& value, const std::string& help,
                   const char* group) {
    return app_.add_option(name, help)->type_name(value)->expected(1)->allow_extra_args(false)->group(group);
  }

  void add_flag(const std::string& names, const std::string& help, const char* group) {
    app_.add_flag(names, help)->group(group);
  }

  void add_key_flags() {
    add("--config.file", "FILE",
        "Configuration file (default " + std::string(kDefaultConfigFile) + ", if it exists)", kKeyGroup);
    for (const KeyFlag& flag : kKeyFlags) {
      CLI::Option* option = add(flag.name, flag.value, flag.help, kKeyGroup);
      if (config::find_key(keys_, flag.path)->is_list)
        option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    }
    add_flag("--web.systemd-socket", "Serve only on systemd's sockets; exit if there are none", kKeyGroup);
  }

  void add_collector_flags(std::span<const CollectorEntry> collectors) {
    unsigned most = 0;
    for (const CollectorEntry& entry : collectors) {
      const std::string name(entry.name);
      add_flag("--collector." + name + ",!--no-collector." + name, "Enable or disable the collector",
               kCollectorGroup);
      most = std::max(most, entry.most_made_up);
      if (entry.most_made_up > 0) options_.simulator = name;
    }
    add_flag("--collector.disable-defaults", "Run only collectors that are enabled explicitly",
             kCollectorGroup);
    CLI::Option* devices = add("--simulate", "N", "Simulate N GPUs and read no real ones", kCollectorGroup);
    if (most > 0) devices->check(from_one_to(most));
    add("--simulate-event", "TEXT", "Simulated failure, such as \"hang 1 after 5s\"; repeatable",
        kCollectorGroup)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }

  void add_action_flags() {
    app_.set_help_flag("-h,--help", "Print this help")->group(kActionGroup);
    add_flag("--version", "Print the version", kActionGroup);
    for (const ActionFlag& flag : action_flags()) {
      if (*flag.value == '\0') {
        add_flag(flag.name, flag.help, kActionGroup);
        continue;
      }
      CLI::Option* option = add(flag.name, flag.value, flag.help, kActionGroup);
      option->check(flag.words.empty() ? from_one_to(kMostProcesses) : one_of(flag.words));
      if (flag.action == Action::once) option->expected(0, 1)->default_str("1");
    }
  }

  bool is_there(const std::string& flag) const { return app_.count(flag) > 0; }

  /// True if a flag without a value is present, and not as "--flag=false".
  bool is_on(const std::string& flag) const { return is_there(flag) && app_.get_option(flag)->as<bool>(); }

  /// Returns an empty list if the flag is absent.
  std::vector<std::string> values_of(const std::string& flag) const {
    return is_there(flag) ? app_.get_option(flag)->reduced_results() : std::vector<std::string>();
  }
  std::string value_of(const std::string& flag) const {
    const std::vector<std::string> values = values_of(flag);
    return values.empty() ? "" : values.back();
  }

  /// The check of each key validates the values.
  std::optional<Exit> take_keys() {
    options_.config_file = value_of("--config.file");
    options_.systemd_socket = is_on("--web.systemd-socket");
    config::Config scratch;
    for (const KeyFlag& flag : kKeyFlags) {
      std::vector<std::string> values = values_of(flag.name);
      if (values.empty()) continue;
      for (std::string& value : values) {
        if (flag.is_file && !value.empty()) value = std::filesystem::absolute(value).string();
      }
      if (const auto complaint = config::set(keys_, scratch, flag.path, values)) {
        return usage_error(std::string(flag.name) + ": " + complaint->text);
      }
      options_.overrides.push_back({flag.path, std::move(values)});
    }
    return std::nullopt;
  }

  std::optional<Exit> take_collectors() {
    options_.disable_defaults = is_on("--collector.disable-defaults");
    options_.simulate_events = values_of("--simulate-event");
    const std::vector<std::string> devices = values_of("--simulate");
    if (options_.simulator.empty() && !(devices.empty() && options_.simulate_events.empty())) {
      return usage_error(
          "--simulate requires the simulated collector, which this gpumeter was built without");
    }
    for (const config::CollectorSchema& collector : schema_.collectors) {
      const std::string flag = "--collector." + collector.name;
      if (devices.empty() && !is_there(flag)) continue;
      const bool on = devices.empty() ? is_on(flag) : collector.name == options_.simulator;
      options_.overrides.push_back({"collectors." + collector.name + ".enabled", {on ? "true" : "false"}});
    }
    if (!devices.empty())
      options_.overrides.push_back({"collectors." + options_.simulator + ".devices", devices});
    return std::nullopt;
  }

  std::optional<Exit> take_action() {
    const char* chosen = nullptr;
    for (const ActionFlag& flag : action_flags()) {
      if (!is_there(flag.name)) continue;
      if (chosen != nullptr)
        return usage_error(std::string(chosen) + " and " + flag.name + " cannot be combined");
      if (!app_.get_subcommands().empty())
        return usage_error(std::string(flag.name) + " cannot be combined with a command");
      chosen = flag.name;
      options_.action = flag.action;
      options_.argument = value_of(flag.name);
    }
    return std::nullopt;
  }

  std::string command_names() const {
    std::vector<std::string> names;
    for (const CLI::App* command : app_.get_subcommands(nullptr)) names.push_back(command->get_name());
    return (names.size() == 1 ? "the command " : "the commands ") + options::enumerate(names, "and");
  }

  std::string unknown_flag(const std::string& argument) const {
    const std::string name = argument.substr(0, argument.find('='));
    if (!name.starts_with('-'))
      return "unexpected argument " + gpumeter::quoted(argument) + "; gpumeter accepts flags and " +
             command_names();
    std::vector<std::string> names;
    for (const auto* option : app_.get_options()) {
      for (const std::string& known : option->get_lnames()) names.push_back("--" + known);
    }
    const std::string meant = config::nearest(name, names);
    return "unknown flag " + name + (meant.empty() ? "" : "; did you mean " + meant + "?");
  }

  const config::Schema schema_;
  const std::vector<config::Key> keys_;
  CLI::App app_{"Prometheus exporter for every GPU of a machine.", "gpumeter"};
  Options options_;
  std::optional<Commands> commands_;
};

}  // namespace

std::variant<Options, Exit> parse_options(int argc, const char* const* argv,
                                          std::span<const CollectorEntry> collectors) {
  auto parsed = CommandLine(collectors).parse(argc, argv);
  // For monitoring, exit 2 means that a GPU has failed; 3 is "unknown".
  const std::span<const char* const> arguments(argv, static_cast<std::size_t>(argc));
  const bool is_check = std::ranges::any_of(arguments, [](std::string_view word) { return word == "check"; });
  if (auto* exit = std::get_if<Exit>(&parsed); exit != nullptr && exit->code == 2 && is_check) exit->code = 3;
  return parsed;
}

}  // namespace gpumeter
