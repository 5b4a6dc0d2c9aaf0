#include "daemon/reload.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include "collectors/builtin.hpp"
#include "config/keys.hpp"
#include "daemon/cli/load_config.hpp"
#include "daemon/setup.hpp"

namespace gpumeter {
namespace {

// The limits for stopping a part and a collector. One that hangs is then left behind.
constexpr auto kStopPart = std::chrono::seconds(1);
constexpr auto kStopCollector = std::chrono::seconds(3);

}  // namespace

std::vector<std::string> Reload::run() {
  std::vector<std::string> problems = reload();
  for (const std::string& problem : problems) {
    parts_.log.error("configuration not reloaded", {{"error", problem}});
  }
  if (problems.empty()) parts_.log.info("configuration reloaded");
  parts_.report.reloaded(problems.empty());
  return problems;
}

std::vector<std::string> Reload::reload() {
  std::vector<std::string> problems;
  std::vector<std::string> notes;
  const config::Loaded loaded = load_checked(parts_.options, parts_.clock, parts_.users, notes);
  for (const std::string& note : notes) parts_.log.warn(note);
  if (const auto* wanted = std::get_if<config::Config>(&loaded)) {
    for (const std::string& key : config::restart_needed(schema(), *parts_.config.get(), *wanted)) {
      problems.push_back(key + " needs a restart");
    }
    if (problems.empty() && parts_.web != nullptr) problems = parts_.web->reload();
    if (problems.empty()) apply(*wanted);
  } else {
    for (const options::Problem& problem : std::get<1>(loaded)) problems.push_back(to_string(problem));
  }
  return problems;
}

void Reload::apply(const config::Config& wanted) {
  const std::shared_ptr<const config::Config> old = parts_.config.replace(wanted);
  parts_.log.configure(wanted.of<Logging>());
  const auto& selection = wanted.of<PageSelection>();
  if (old->of<PageSelection>() != selection) parts_.pages.select(selection);
  parts_.fleet.configure(fleet_settings_of(wanted));
  parts_.jobs.configure({wanted.of<jobs::Limits>(), wanted.of<jobs::Settings>().users});
  parts_.bus.want(has_bus(wanted));
  parts_.periodic.reload(parts_.config.get(), parts_.clock.monotonic() + kStopPart);
  for (const CollectorEntry& entry : builtin_collectors()) {
    const std::string name(entry.name);
    const bool same = old->collectors.at(name).options == wanted.collectors.at(name).options;
    const bool was_on = is_enabled(entry, *old);
    const bool is_on = is_enabled(entry, wanted);
    if (was_on && (!is_on || !same)) parts_.fleet.remove(name, parts_.clock.monotonic() + kStopCollector);
    if (is_on && (!was_on || !same))
      parts_.fleet.add({{&entry, context_of(wanted, entry, parts_.clock, parts_.drm_users)}});
  }
}

}  // namespace gpumeter
