#include "daemon/cli/options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/text.hpp"
#include "build_info.hpp"
#include "collectors/builtin.hpp"
#include "config/codec.hpp"
#include "config/keys.hpp"
#include "config/suggest.hpp"

namespace gpumeter {
namespace {

/// A flag that stands for a key: the key's own check judges its value.
struct KeyFlag {
  const char* name;
  const char* path;
  const char* value;  ///< as --help calls it
  bool is_file;       ///< relative to where the command was given
  const char* help;
};
constexpr KeyFlag kKeyFlags[] = {
    {"--web.listen-address", "web.listen", "HOST:PORT", false,
     "Listen address; repeatable (default localhost:10478)"},
    {"--web.config.file", "web.config_file", "FILE", true, "Not supported; for TLS, use a reverse proxy"},
    {"--web.telemetry-path", "web.telemetry_path", "PATH", false,
     "Path of the metrics page (default /metrics)"},
    {"--path.sysfs", "paths.sysfs", "DIR", true, "Mount point of sysfs (default /sys)"},
    {"--path.procfs", "paths.procfs", "DIR", true, "Mount point of procfs (default /proc)"},
    {"--path.state", "paths.state", "DIR", true, "State folder (default /var/lib/gpumeter)"},
    {"--log.level", "log.level", "LEVEL", false, "debug, info (default), warn or error"},
    {"--log.format", "log.format", "FORMAT", false, "auto (default), logfmt or json"},
};

/// PID_MAX_LIMIT of the kernel: no process has a higher number.
constexpr unsigned kMostProcesses = 1U << 22U;

/// What CLI11 fills in; it needs the variables to stay where they are while it parses.
struct Parsed {
  std::map<std::string, std::vector<std::string>> keys;  ///< by path
  std::map<std::string, bool> collectors;
  std::string once, simulate, reload;
  bool version = false;
  bool check_config = false;
  bool list_devices = false;
  std::string print_metrics, print_config;
  Options options;
};

Exit usage_error(const std::string& sentence) {
  return {2, "gpumeter: " + sentence + "\nTry 'gpumeter --help'.\n"};
}

/// A value out of a closed set, refused in the same words as a key of the file would be.
CLI::Validator one_of(const std::vector<std::string>& words) {
  const auto check = [words](const std::string& text) {
    if (std::find(words.begin(), words.end(), text) != words.end()) return std::string();
    return "must be " + config::enumerate(words, "or") + ", not \"" + config::printable(text) + "\"";
  };
  return {check, ""};
}

CLI::Validator from_one_to(unsigned most) {
  const auto check = [most](const std::string& text) {
    const unsigned count = parse_number<unsigned>(text).value_or(0);
    if (count >= 1 && count <= most) return std::string();
    return "must be a whole number from 1 to " + std::to_string(most) + ", not \"" + config::printable(text) +
           "\"";
  };
  return {check, ""};
}

std::string version_text() {
  return std::string("gpumeter, version ") + build::kVersion + " (branch: " + build::kBranch +
         ", revision: " + build::kRevision + ")\n  compiler:         " + build::kCompiler + "\n";
}

/// CLI11 writes the value that a negated flag stands for behind its name: "--no-collector.amd{false}".
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    std::string name = CLI::Formatter::make_option_name(option, is_positional);
    constexpr std::string_view kNegated = "{false}";
    if (const auto at = name.find(kNegated); at != std::string::npos) name.erase(at, kNegated.size());
    return name;
  }
};

void add_key_flags(CLI::App& app, Parsed& parsed) {
  for (const KeyFlag& flag : kKeyFlags) {
    auto* option = app.add_option(flag.name, parsed.keys[flag.path], flag.help);
    option->type_name(flag.value)->expected(1)->group("Configuration (overrides the file)");
    const bool repeatable = config::find_key(flag.path)->is_list;
    if (repeatable) option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    // One value each time: what follows it is the next flag, or a mistake.
    option->allow_extra_args(false);
  }
}

void add_collector_flags(CLI::App& app, Parsed& parsed, config::Schemas schemas) {
  const std::string group = "Collectors";
  for (const auto& schema : schemas) {
    const std::string names = "--collector." + schema.name + ",!--no-collector." + schema.name;
    app.add_flag(names, parsed.collectors[schema.name], "Enable or disable the collector")->group(group);
  }
  app.add_flag("--collector.disable-defaults", parsed.options.disable_defaults,
               "Run only collectors that are enabled explicitly")
      ->group(group);
  app.add_option("--simulate", parsed.simulate, "Simulate N GPUs and read no real ones")
      ->type_name("N")
      ->check(from_one_to(most_simulated_devices()))
      ->group(group);
  app.add_option("--simulate-event", parsed.options.simulate_events,
                 "Simulated failure, such as \"hang 1 after 5s\"; repeatable")
      ->type_name("TEXT")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false)
      ->group(group);
}

void add_action_flags(CLI::App& app, Parsed& parsed) {
  const std::string group = "Instead of running";
  app.set_help_flag("-h,--help", "Print this help")->group(group);
  app.add_flag("--version", parsed.version, "Print the version")->group(group);
  app.add_flag("--check-config", parsed.check_config, "Print all errors in the configuration")->group(group);
  app.add_option("--reload", parsed.reload, "Reload a daemon's configuration; exit 1 if it is rejected")
      ->type_name("PID")
      ->check(from_one_to(kMostProcesses))
      ->group(group);
  app.add_option("--once", parsed.once, "Print one page, after two passes one second apart or one pass (0)")
      ->type_name("0|1")
      ->expected(0, 1)
      ->default_str("1")
      ->check(one_of({"0", "1"}))
      ->group(group);
  app.add_flag("--list-devices", parsed.list_devices, "Print the devices found")->group(group);
  app.add_option("--print-metrics", parsed.print_metrics, "Print every metric (markdown, text)")
      ->type_name("FORMAT")
      ->check(one_of({"markdown", "text"}))
      ->group(group);
  app.add_option("--print-config", parsed.print_config, "Print every configuration key (markdown)")
      ->type_name("FORMAT")
      ->check(one_of({"markdown"}))
      ->group(group);
}

void add_flags(CLI::App& app, Parsed& parsed, config::Schemas schemas) {
  app.formatter(std::make_shared<HelpFormatter>());
  app.get_formatter()->column_width(36);
  app.allow_extras();
  // The last one holds, so that a unit's drop-in can overrule the unit.
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.add_option("--config.file", parsed.options.config_file,
                 "Configuration file (default " + std::string(kDefaultConfigFile) + ", if it exists)")
      ->type_name("FILE")
      ->group("Configuration (overrides the file)");
  add_key_flags(app, parsed);
  app.add_flag("--web.systemd-socket", parsed.options.systemd_socket,
               "Serve only on systemd's sockets; exit if there are none")
      ->group("Configuration (overrides the file)");
  add_collector_flags(app, parsed, schemas);
  add_action_flags(app, parsed);
}

std::string unknown_flag(const CLI::App& app, const std::string& argument) {
  const std::string name = argument.substr(0, argument.find('='));
  if (!name.starts_with('-')) return "unexpected argument \"" + argument + "\"; there are only flags";
  std::vector<std::string> names;
  for (const auto* option : app.get_options()) {
    for (const std::string& known : option->get_lnames()) names.push_back("--" + known);
  }
  const std::string meant = config::nearest(name, names);
  return "unknown flag " + name + (meant.empty() ? "" : "; did you mean " + meant + "?");
}

/// The flags that stand for keys, each judged by its key's check.
std::optional<Exit> take_overrides(Parsed& parsed) {
  config::Config scratch;
  for (const KeyFlag& flag : kKeyFlags) {
    std::vector<std::string>& values = parsed.keys[flag.path];
    if (values.empty()) continue;
    for (std::string& value : values) {
      if (flag.is_file && !value.empty()) value = std::filesystem::absolute(value).string();
    }
    if (const auto complaint = config::set(scratch, flag.path, values)) {
      return usage_error(std::string(flag.name) + ": " + *complaint);
    }
    parsed.options.overrides.push_back({flag.path, std::move(values)});
  }
  return std::nullopt;
}

void take_collectors(const CLI::App& app, Parsed& parsed) {
  for (const auto& [name, on] : parsed.collectors) {
    if (app.count("--collector." + name) > 0) parsed.options.collectors[name] = on;
  }
}

std::optional<Exit> take_action(const CLI::App& app, Parsed& parsed) {
  const std::pair<const char*, Action> kActions[] = {
      {"--once", Action::once},
      {"--check-config", Action::check_config},
      {"--reload", Action::reload},
      {"--list-devices", Action::list_devices},
      {"--print-metrics", Action::print_metrics},
      {"--print-config", Action::print_config},
  };
  const char* chosen = nullptr;
  for (const auto& [flag, action] : kActions) {
    if (app.count(flag) == 0) continue;
    if (chosen != nullptr) return usage_error(std::string(chosen) + " and " + flag + " exclude each other");
    chosen = flag;
    parsed.options.action = action;
  }
  if (!parsed.reload.empty()) parsed.options.daemon = std::stoi(parsed.reload);
  parsed.options.passes = parsed.once == "0" ? 1 : 2;
  parsed.options.print_format = parsed.print_metrics.empty() ? parsed.print_config : parsed.print_metrics;
  return std::nullopt;
}

bool has_collector(config::Schemas schemas, std::string_view name) {
  return std::any_of(schemas.begin(), schemas.end(), [name](const auto& s) { return s.name == name; });
}

std::variant<Options, Exit> checked(const CLI::App& app, Parsed& parsed, config::Schemas schemas) {
  if (const auto extras = app.remaining(); !extras.empty()) {
    return usage_error(unknown_flag(app, extras.front()));
  }
  if (parsed.version) return Exit{0, version_text()};
  if (!parsed.simulate.empty()) parsed.options.simulate = static_cast<unsigned>(std::stoul(parsed.simulate));
  const bool simulates = parsed.options.simulate || !parsed.options.simulate_events.empty();
  if (simulates && !has_collector(schemas, "simulated")) {
    return usage_error("--simulate needs the simulated collector, which this gpumeter was built without");
  }
  if (auto exit = take_overrides(parsed)) return *exit;
  if (auto exit = take_action(app, parsed)) return *exit;
  take_collectors(app, parsed);
  return std::move(parsed.options);
}

}  // namespace

std::variant<Options, Exit> parse_options(int argc, const char* const* argv, config::Schemas schemas) {
  CLI::App app("Prometheus exporter for every GPU of a machine.", "gpumeter");
  Parsed parsed;
  try {
    add_flags(app, parsed, schemas);
    app.parse(argc, argv);
    return checked(app, parsed, schemas);
  } catch (const CLI::CallForHelp&) {
    return Exit{0, app.help()};
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string text = error.what();  // "--flag: 1 required ... missing"
    return usage_error(text.substr(0, text.find(':')) + " needs a value");
  } catch (const CLI::ParseError& error) {
    return usage_error(error.what());
  }
}

}  // namespace gpumeter
