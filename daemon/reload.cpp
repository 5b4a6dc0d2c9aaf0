#include "daemon/reload.hpp"

#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>

#include "base/folder.hpp"
#include "base/text.hpp"
#include "collectors/builtin.hpp"
#include "config/keys.hpp"
#include "daemon/cli/load_config.hpp"
#include "daemon/setup.hpp"

namespace gpumeter {
namespace {

constexpr auto kBetweenLooks = std::chrono::milliseconds(20);

constexpr const char* kName = "reload";

Error failed(const std::string& what) { return Error(what + ": " + std::strerror(errno)); }

/// The first line has the process id and the start time. One line for each problem follows.
std::string text_of(const ReloadOutcome& outcome) {
  std::string text = std::to_string(outcome.daemon) + " " + std::to_string(outcome.begun.count()) + "\n";
  for (const std::string& problem : outcome.problems) text += problem + "\n";
  return text;
}

// The limits for stopping a part and a collector. One that hangs is then left behind.
constexpr auto kStopPart = std::chrono::seconds(1);
constexpr auto kStopCollector = std::chrono::seconds(3);

}  // namespace

std::string own_runtime_folder() {
  const char* given = std::getenv("RUNTIME_DIRECTORY");
  const std::string_view folders = given == nullptr ? "" : given;
  return std::string(folders.substr(0, folders.find(':')));
}

std::string runtime_folder() {
  std::string own = own_runtime_folder();
  return own.empty() ? "/run/gpumeter" : own;
}

Result<Done> write_outcome(const std::string& folder, const ReloadOutcome& outcome) {
  constexpr mode_t kOwnAndGroup = 0640;
  const Result<Folder> runtime = Folder::open(folder);
  if (!runtime) return runtime.error();
  return runtime->replace(kName, text_of(outcome), kOwnAndGroup, Folder::Outlives::crash);
}

std::optional<ReloadOutcome> read_outcome(const std::string& folder) {
  constexpr std::size_t kMost = 1U << 20U;
  const Result<Folder> runtime = Folder::open(folder);
  const Result<std::string> text = runtime ? runtime->read(kName, kMost) : Result<std::string>(std::string());
  if (!text) return std::nullopt;
  std::string_view lines = *text;
  std::string_view first = take_until(lines, '\n');
  const auto daemon = parse_number<pid_t>(take_until(first, ' '));
  const auto begun = parse_number<Nanoseconds::rep>(first);
  if (!daemon || !begun) return std::nullopt;
  ReloadOutcome outcome{*daemon, Nanoseconds(*begun), {}};
  while (!lines.empty()) outcome.problems.push_back(readable(take_until(lines, '\n'), is_control));
  return outcome;
}

Result<ReloadOutcome> request_reload(pid_t daemon, const std::string& folder, const Clock& clock,
                                     Nanoseconds patience) {
  const Nanoseconds asked = clock.monotonic();
  const std::string name = "process " + std::to_string(daemon);
  if (kill(daemon, SIGHUP) != 0) return failed(name + " cannot receive SIGHUP");
  while (clock.monotonic() < asked + patience) {
    std::optional<ReloadOutcome> outcome = read_outcome(folder);
    if (outcome && outcome->daemon == daemon && outcome->begun >= asked) return *std::move(outcome);
    if (kill(daemon, 0) != 0) return failed(name + " ended before the reload was complete");
    std::this_thread::sleep_for(kBetweenLooks);
  }
  return Error(name + " received SIGHUP, but left no outcome in " + folder + "/" + kName + "; see its log");
}

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
