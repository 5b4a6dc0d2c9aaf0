#include "daemon/cli/load_config.hpp"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <utility>

#include "base/text.hpp"
#include "collectors/builtin.hpp"
#include "collectors/jobs/intake/settings.hpp"
#include "config/keys.hpp"
#include "daemon/cli/docs.hpp"
#include "daemon/setup.hpp"
#include "daemon/web/web_config.hpp"
#include "exporter/http/settings.hpp"
#include "exporter/text/selection.hpp"

namespace gpumeter {
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

/// A family of a program that sends its own is not known yet, so a name without a family is no error.
void check_names(const config::Config& config, std::vector<std::string>& notes) {
  const std::vector<const MetricDescriptor*> families = catalogue_families(builtin_collectors());
  const auto check = [&](const char* key, const std::vector<SeriesPattern>& patterns) {
    for (const SeriesPattern& pattern : patterns) {
      const auto is_it = [&](const MetricDescriptor* family) { return pattern.matches_name(family->name); };
      if (std::ranges::any_of(families, is_it)) continue;
      notes.push_back(std::string(key) + ": no known family has the name in " +
                      gpumeter::quoted(options::printable(pattern.text())));
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

config::Loaded load_config(const Options& options, const config::Schema& schema, options::Places* places) {
  std::string file = options.config_file;
  std::error_code error;
  if (file.empty() && std::filesystem::exists(kDefaultConfigFile, error)) file = kDefaultConfigFile;
  config::Loaded loaded =
      file.empty() ? config::Loaded(config::defaults(schema)) : config::load_file(file, schema, places);
  if (auto* config = std::get_if<config::Config>(&loaded)) apply(options, schema, *config);
  return loaded;
}

config::Loaded load_checked(const Options& options, const Clock& clock, jobs::KnownUsers& users,
                            std::vector<std::string>& notes) {
  options::Places places;
  config::Loaded loaded = load_config(options, schema(), &places);
  auto* config = std::get_if<config::Config>(&loaded);
  if (config == nullptr) return loaded;
  std::vector<options::Problem> problems;
  for (const CollectorEntry* entry : enabled_collectors(*config)) {
    const auto problem = entry->check(context_of(*config, *entry, clock));
    if (problem) problems.push_back(placed(*problem, *entry, places));
  }
  check_users(*config, places, users, problems, notes);
  check_names(*config, notes);
  // Only the daemon may be allowed to read a private key.
  const bool is_for_daemon = options.action == Action::run || options.action == Action::check_config;
  const std::string& web_file = config->of<HttpSettings>().config_file;
  if (is_for_daemon && !web_file.empty()) {
    for (options::Problem& problem : load_generation(web_file).file.problems) {
      problems.push_back(std::move(problem));
    }
  }
  if (!problems.empty()) return problems;
  return loaded;
}

}  // namespace gpumeter
