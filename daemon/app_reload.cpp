/// The part of App that follows the configuration while it runs.
#include <unistd.h>

#include <utility>

#include "collectors/builtin.hpp"
#include "config/keys.hpp"
#include "daemon/app.hpp"
#include "daemon/job_settings.hpp"
#include "daemon/reload_outcome.hpp"
#include "systemd/notify.hpp"

namespace gpumeter {
namespace {

// A collector whose driver hangs is left behind after this.
constexpr auto kStopCollector = std::chrono::seconds(3);

}  // namespace

void App::reload() {
  const Nanoseconds begun = clock_.monotonic();
  systemd::notify_reloading(std::chrono::duration_cast<std::chrono::microseconds>(begun));
  std::vector<std::string> problems;
  const std::optional<config::Config> wanted = load_anew(problems);
  for (const std::string& problem : problems) log_.error("configuration not reloaded", {{"error", problem}});
  if (wanted) {
    apply(*wanted);
    log_.info("configuration reloaded");
  }
  self_report_->reloaded(wanted.has_value());
  systemd::notify_ready(status_line());
  answer_reload(begun, problems);
}

// After READY=1, so that the service is running again when `systemctl reload` returns. The runtime folder is
// in memory, so that this write cannot hang.
void App::answer_reload(Nanoseconds begun, const std::vector<std::string>& problems) {
  const Result<Done> written = write_outcome(runtime_folder(), {getpid(), begun, problems});
  if (!written) log_.debug("no outcome of the reload for --reload", {{"error", written.error().message()}});
}

// nullopt: the new one is wrong or needs a restart, and the old one stays.
std::optional<config::Config> App::load_anew(std::vector<std::string>& problems) {
  std::vector<std::string> notes;
  config::Loaded loaded = load_checked(options_, clock_, known_users_, notes);
  for (const std::string& note : notes) log_.warn(note);
  if (const auto* found = std::get_if<std::vector<config::Problem>>(&loaded)) {
    for (const config::Problem& problem : *found) problems.push_back(config::to_string(problem));
    return std::nullopt;
  }
  config::Config wanted = std::get<config::Config>(std::move(loaded));
  MutexLock lock(mutex_);
  const std::vector<std::string> fixed = config::restart_needed(config_, wanted);
  for (const std::string& key : fixed) problems.push_back(key + " needs a restart");
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
  jobs_.configure(job_settings_of(wanted).live);
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
