#include "daemon/cli/options.hpp"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <utility>

#include "base/build_info.hpp"
#include "base/text.hpp"
#include "collectors/builtin.hpp"
#include "collectors/jobs/intake/settings.hpp"
#include "config/config.hpp"
#include "daemon/cli/companion.hpp"
#include "daemon/cli/docs.hpp"
#include "daemon/setup.hpp"
#include "daemon/web/web_config.hpp"
#include "exporter/http/settings.hpp"
#include "exporter/text/selection.hpp"

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
     "Listen address, unix:/PATH or vsock:CID:PORT; repeatable (default localhost:10478)"},
    {"--web.config.file", "web.config_file", "FILE", true,
     "File with TLS, users and headers, as other exporters have"},
    {"--web.telemetry-path", "web.telemetry_path", "PATH", false,
     "Path of the metrics page (default /metrics)"},
    {"--metrics.detail", "metrics.detail", "DETAIL", false,
     "Series of the metrics page: standard (default) or full"},
    {"--path.sysfs", "paths.sysfs", "DIR", true, "Mount point of sysfs (default /sys)"},
    {"--path.procfs", "paths.procfs", "DIR", true, "Mount point of procfs (default /proc)"},
    {"--path.state", "paths.state", "DIR", true, "State folder (default /var/lib/gpumeter)"},
    {"--path.api", "paths.api", "FILE", true, "Socket for the services (default /run/gpumeter/api.sock)"},
    {"--replay", "replay.file", "FILE", true, "Serve a recording of gpumeter record instead of this machine"},
    {"--speed", "replay.speed", "N", false, "Seconds of the recording for each second (default 1)"},
    {"--log.level", "log.level", "LEVEL", false, "debug, info (default), warn or error"},
    {"--log.format", "log.format", "FORMAT", false, "auto (default), logfmt or json"},
};

/// PID_MAX_LIMIT of the kernel, the upper bound of process ids.
constexpr unsigned kMostProcesses = 1U << 22U;

constexpr std::string_view kKeyGroup = "Configuration (overrides the file)";
constexpr std::string_view kCollectorGroup = "Collectors";
constexpr std::string_view kActionGroup = "Instead of running";

struct ActionFlag {
  Action action;
  Flag flag;
};
std::vector<ActionFlag> action_flags() {
  return {
      {Action::check_config, {"--check-config", "", "Print all errors in the configuration", kActionGroup}},
      {Action::reload,
       {.name = "--reload",
        .value = "PID",
        .help = "Reload a daemon's configuration; exit 1 if it is rejected",
        .group = kActionGroup,
        .most = kMostProcesses}},
      {Action::once,
       {.name = "--once",
        .value = "0|1=1",
        .help = "Print one page, after two passes one second apart or one pass (0)",
        .group = kActionGroup,
        .words = {"0", "1"},
        .fallback = "1"}},
      {Action::list_devices, {"--list-devices", "", "Print the devices found", kActionGroup}},
      {Action::print_metrics,
       {"--print-metrics",
        "FORMAT",
        "Print every metric (markdown, text)",
        kActionGroup,
        {"markdown", "text"}}},
      {Action::print_config,
       {"--print-config", "FORMAT", "Print every configuration key (markdown)", kActionGroup, {"markdown"}}},
      {Action::print_conditions,
       {"--print-conditions",
        "FORMAT",
        "Print the conditions that make a GPU degraded or failed (markdown, json)",
        kActionGroup,
        {"markdown", "json"}}},
      {Action::print_events,
       {"--print-events",
        "FORMAT",
        "Print the catalogue of events in the kernel's log (markdown)",
        kActionGroup,
        {"markdown"}}},
      {Action::print_otlp,
       {"--print-otlp",
        "FORMAT",
        "Print the names of series in OTLP (markdown)",
        kActionGroup,
        {"markdown"}}},
  };
}

std::string version_text() {
  return std::string("gpumeter, version ") + build::kVersion + " (branch: " + build::kBranch +
         ", revision: " + build::kRevision + ")\n  compiler:         " + build::kCompiler + "\n";
}

std::string help_text(std::span<const Flag> flags) {
  std::string text =
      "Prometheus exporter for every GPU of a machine.\nUsage: gpumeter [OPTIONS] [SUBCOMMAND]\n" +
      help_of(flags) + "\nCommands:\n";
  for (const Companion& companion : kCompanions) text += help_row(companion.command, companion.help);
  return text;
}

/// The check of each key validates the values.
std::optional<Exit> take_keys(const CommandLine& line, const config::Schema& schema, Options& options) {
  options.config_file = line.value("--config.file");
  options.systemd_socket = line.is_on("--web.systemd-socket");
  const std::vector<config::Key> keys = config::keys(schema);
  config::Config scratch;
  for (const KeyFlag& flag : kKeyFlags) {
    std::vector<std::string> values = line.values(flag.name);
    if (values.empty()) continue;
    if (!config::find_key(keys, flag.path)->is_list) values = {values.back()};
    for (std::string& value : values) {
      if (flag.is_file && !value.empty()) value = std::filesystem::absolute(value).string();
    }
    if (const auto complaint = config::set(keys, scratch, flag.path, values))
      return usage_error(std::string(flag.name) + ": " + complaint->text);
    options.overrides.push_back({flag.path, std::move(values)});
  }
  return std::nullopt;
}

std::optional<Exit> take_collectors(const CommandLine& line, std::span<const CollectorEntry> collectors,
                                    Options& options) {
  options.disable_defaults = line.is_on("--collector.disable-defaults");
  options.simulate_events = line.values("--simulate-event");
  for (const CollectorEntry& entry : collectors) {
    if (entry.most_made_up > 0) options.simulator = entry.name;
  }
  const std::string devices = line.value("--simulate");
  if (options.simulator.empty() && !(devices.empty() && options.simulate_events.empty()))
    return usage_error("--simulate requires the simulated collector, which this gpumeter was built without");
  for (const CollectorEntry& entry : collectors) {
    const std::string name(entry.name);
    const std::string flag = "--collector." + name;
    if (devices.empty() && !line.is_given(flag)) continue;
    const bool on = devices.empty() ? line.is_on(flag) : name == options.simulator;
    options.overrides.push_back({"collectors." + name + ".enabled", {on ? "true" : "false"}});
  }
  if (!devices.empty())
    options.overrides.push_back({"collectors." + options.simulator + ".devices", {devices}});
  return std::nullopt;
}

std::optional<Exit> take_action(const CommandLine& line, Options& options) {
  std::string chosen;
  for (const auto& [action, flag] : action_flags()) {
    if (!line.is_given(flag.name)) continue;
    if (!chosen.empty()) return usage_error(chosen + " and " + flag.name + " cannot be combined");
    if (!line.words().empty()) return usage_error(flag.name + " cannot be combined with a command");
    chosen = flag.name;
    options.action = action;
    options.argument = line.value(flag.name);
  }
  return std::nullopt;
}

}  // namespace

Exit unexpected(const std::string& word) {
  std::vector<std::string> names;
  for (const Companion& companion : kCompanions) {
    if (companion.is_first && companion.command == word)
      return usage_error(word + " must be the first argument");
    names.emplace_back(companion.command);
  }
  const std::string meant = options::nearest(word, names);
  return usage_error("unexpected argument " + gpumeter::quoted(word) +
                     (meant.empty() || meant == word ? "" : "; did you mean " + meant + "?") +
                     "; gpumeter accepts flags and the commands " + options::enumerate(names, "and"));
}

std::vector<Flag> flags_of(std::span<const CollectorEntry> collectors) {
  std::vector<Flag> flags = {
      {"--config.file", "FILE",
       "Configuration file (default " + std::string(kDefaultConfigFile) + ", if it exists)", kKeyGroup}};
  for (const KeyFlag& flag : kKeyFlags) flags.push_back({flag.name, flag.value, flag.help, kKeyGroup});
  flags.push_back(
      {"--web.systemd-socket", "", "Serve only on systemd's sockets; exit if there are none", kKeyGroup});
  unsigned most = 0;
  std::string events;
  for (const CollectorEntry& entry : collectors) {
    flags.push_back({.name = "--collector." + std::string(entry.name),
                     .help = "Enable or disable the collector",
                     .group = kCollectorGroup,
                     .has_negation = true});
    if (entry.most_made_up == 0) continue;
    most = entry.most_made_up;
    for (const CollectorOption& option : entry.options) {
      if (option.name == "events") events = option.help;
    }
  }
  flags.push_back({"--collector.disable-defaults", "", "Run only collectors that are enabled explicitly",
                   kCollectorGroup});
  flags.push_back({.name = "--simulate",
                   .value = "N",
                   .help = "Simulate N GPUs and read no real ones",
                   .group = kCollectorGroup,
                   .most = most});
  flags.push_back(
      {"--simulate-event", "TEXT", "Such as \"hang 1 after 5s\"; repeatable. " + events, kCollectorGroup});
  flags.push_back({"--help", "", "Print this help", kActionGroup});
  flags.push_back({"--version", "", "Print the version", kActionGroup});
  for (const auto& [action, flag] : action_flags()) flags.push_back(flag);
  return flags;
}

std::variant<Options, Exit> options_of(const CommandLine& line, std::span<const CollectorEntry> collectors) {
  if (line.problem()) return usage_error(*line.problem());
  if (line.is_on("--version")) return Exit{0, version_text()};
  Options options;
  if (auto exit = take_keys(line, schema_of(collectors), options)) return *exit;
  if (auto exit = take_collectors(line, collectors, options)) return *exit;
  if (auto exit = take_action(line, options)) return *exit;
  return options;
}

std::variant<Options, Exit> parse_options(int argc, const char* const* argv,
                                          std::span<const CollectorEntry> collectors) {
  const std::vector<Flag> flags = flags_of(collectors);
  const CommandLine line(flags, std::span(argv, static_cast<std::size_t>(argc)).subspan(1));
  if (line.is_on("--help")) return Exit{0, help_text(flags)};
  if (!line.problem() && !line.words().empty()) return unexpected(line.words().front());
  return options_of(line, collectors);
}

namespace {

/// If the file does not have the element, the element comes from a flag.
options::Problem placed(const OptionProblem& problem, const CollectorEntry& entry,
                        const options::Places& places) {
  const std::string key = "collectors." + std::string(entry.name) + "." + problem.key;
  options::Problem found = places.problem(key, problem.element, problem.text);
  if (found.line > 0) return found;
  const bool is_event = entry.most_made_up > 0 && problem.key == "events";
  return {"gpumeter", 0, is_event ? "--simulate-event" : key, problem.text};
}

void check_users(config::Config& config, const options::Places& places, jobs::KnownUsers& known,
                 std::vector<options::Problem>& problems, std::vector<std::string>& notes) {
  const std::vector<std::string> users = config.of<jobs::Settings>().users;
  std::vector<std::string> names;
  std::copy_if(users.begin(), users.end(), std::back_inserter(names),
               [](const std::string& user) { return !options::is_number(user); });
  const auto entries = known.of(names);
  for (std::size_t i = 0; i < users.size(); ++i) {
    const auto entry = entries.find(users[i]);
    if (entry == entries.end()) continue;
    using Status = jobs::KnownUsers::Status;
    const std::string user = gpumeter::quoted(options::printable(users[i]));
    if (entry->second.status == Status::known) {
      config.edit<jobs::Settings>().users.push_back(std::to_string(entry->second.uid));
    } else if (entry->second.status == Status::unknown) {
      problems.push_back(
          places.problem("jobs.users", i, "must be uids or existing user names; there is no user " + user));
    } else {
      notes.push_back("jobs.users: the name service does not answer; whether user " + user +
                      " exists is not checked");
    }
  }
}

/// A family of a page or a program is not known yet, so a name without a family is an error only if it is
/// nearly that of a known one.
void check_names(const config::Config& config, const options::Places& places,
                 std::vector<options::Problem>& problems, std::vector<std::string>& notes) {
  std::vector<std::string> names;
  for (const MetricDescriptor* family : catalogue_families(builtin_collectors()))
    names.emplace_back(family->name);
  const auto check = [&](const char* key, const std::vector<SeriesPattern>& patterns) {
    for (std::size_t i = 0; i < patterns.size(); ++i) {
      const SeriesPattern& pattern = patterns[i];
      if (std::ranges::any_of(names, [&](const auto& name) { return pattern.matches_name(name); })) continue;
      const std::string text =
          "no known family has the name in " + gpumeter::quoted(options::printable(pattern.text()));
      const std::string name = pattern.text().substr(0, pattern.text().find('{'));
      const std::string meant = options::nearest(name, names);
      if (meant.empty()) {
        notes.push_back(std::string(key) + ": " + text);
      } else {
        problems.push_back(places.problem(key, i, text + "; did you mean " + meant + "?"));
      }
    }
  };
  const PageSelection& selection = config.of<PageSelection>();
  check("metrics.include", selection.include);
  check("metrics.exclude", selection.exclude);
}

}  // namespace

void apply(const Options& options, const config::Schema& schema, config::Config& config) {
  for (auto& [name, collector] : config.collectors) {
    using options::Enabled;
    if (options.disable_defaults && collector.enabled == Enabled::automatic) collector.enabled = Enabled::off;
  }
  // parse_options() has checked the values, so set() returns no complaint.
  const std::vector<config::Key> keys = config::keys(schema);
  for (const auto& [path, values] : options.overrides) config::set(keys, config, path, values);
  if (options.simulate_events.empty()) return;
  auto& events = config.collectors.at(options.simulator).options["events"];
  events.insert(events.end(), options.simulate_events.begin(), options.simulate_events.end());
}

config::Loaded load_config(const Options& options, const config::Schema& schema) {
  std::string file = options.config_file;
  std::error_code error;
  if (file.empty() && std::filesystem::exists(kDefaultConfigFile, error)) file = kDefaultConfigFile;
  config::Loaded loaded =
      file.empty() ? config::Loaded{config::defaults(schema)} : config::load_file(file, schema);
  apply(options, schema, loaded.config);
  if (replays(loaded.config)) leave_machine(loaded.config);
  return loaded;
}

config::Loaded load_checked(const Options& options, const Clock& clock, jobs::KnownUsers& users,
                            std::vector<std::string>& notes) {
  config::Loaded loaded = load_config(options, schema());
  auto& [config, problems, places] = loaded;
  for (const CollectorEntry* entry : enabled_collectors(config)) {
    const std::string keys = "collectors." + std::string(entry->name) + ".";
    const auto is_of_entry = [&](const options::Problem& it) { return it.key.starts_with(keys); };
    if (std::ranges::any_of(problems, is_of_entry)) continue;  // the others may depend on that key
    const auto problem = entry->check(context_of(config, *entry, clock));
    if (problem) problems.push_back(placed(*problem, *entry, places));
  }
  check_users(config, places, users, problems, notes);
  check_names(config, places, problems, notes);
  std::ranges::stable_sort(problems, {}, &options::Problem::line);
  // Only the daemon may be allowed to read a private key.
  const bool is_for_daemon = options.action == Action::run || options.action == Action::check_config;
  const std::string& web_file = config.of<HttpSettings>().config_file;
  if (is_for_daemon && !web_file.empty()) {
    for (options::Problem& problem : load_generation(web_file).file.problems) {
      problems.push_back(std::move(problem));
    }
  }
  return loaded;
}

}  // namespace gpumeter
