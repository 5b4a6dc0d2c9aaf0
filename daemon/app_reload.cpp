/// The part of App that follows the configuration while it runs.
#include <utility>

#include "collectors/builtin.hpp"
#include "config/keys.hpp"
#include "daemon/app.hpp"
#include "systemd/notify.hpp"

namespace gpumeter {
namespace {

// A collector whose driver hangs is left behind after this.
constexpr auto kStopCollector = std::chrono::seconds(3);

}  // namespace

void App::reload() {
  systemd::notify_reloading(std::chrono::duration_cast<std::chrono::microseconds>(clock_.monotonic()));
  const std::optional<config::Config> wanted = load_anew();
  if (wanted) {
    apply(*wanted);
    log_.info("configuration reloaded");
  }
  self_report_->reloaded(wanted.has_value());
  systemd::notify_ready(status_line());
}

// nullopt: the new one is wrong or needs a restart, and the old one stays.
std::optional<config::Config> App::load_anew() {
  config::Loaded loaded = load_checked(options_, clock_);
  if (const auto* problems = std::get_if<std::vector<config::Problem>>(&loaded)) {
    for (const config::Problem& problem : *problems) {
      log_.error("configuration not reloaded", {{"error", config::to_string(problem)}});
    }
    return std::nullopt;
  }
  config::Config wanted = std::get<config::Config>(std::move(loaded));
  MutexLock lock(mutex_);
  const std::vector<std::string> fixed = config::restart_needed(config_, wanted);
  for (const std::string& key : fixed) {
    log_.error("configuration not reloaded", {{"error", key + " needs a restart"}});
  }
  if (!fixed.empty()) return std::nullopt;
  return wanted;
}

void App::apply(const config::Config& wanted) {
  config::Config old;
  {
    MutexLock lock(mutex_);
    old = std::exchange(config_, wanted);
  }
  log_.configure(wanted.log);
  fleet_->configure(settings_of(wanted));
  jobs_.configure(wanted);
  bus_watcher_->want(has_bus(wanted));
  const auto before = enabled_collectors(old);
  const auto after = enabled_collectors(wanted);
  const auto has = [](const auto& list, const auto* entry) {
    return std::find(list.begin(), list.end(), entry) != list.end();
  };
  for (const CollectorEntry& entry : builtin_collectors()) {
    const std::string name(entry.name);
    const bool same = old.collectors.at(name).options == wanted.collectors.at(name).options;
    const bool was_on = has(before, &entry);
    const bool is_on = has(after, &entry);
    if (was_on && (!is_on || !same)) fleet_->remove(name, clock_.monotonic() + kStopCollector);
    if (is_on && (!was_on || !same)) fleet_->add({{&entry, context_of(wanted, entry, clock_)}});
  }
}

}  // namespace gpumeter
