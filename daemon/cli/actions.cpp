#include "daemon/cli/actions.hpp"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "base/program.hpp"
#include "collectors/builtin.hpp"
#include "collectors/events/catalogue.hpp"
#include "config/config.hpp"
#include "daemon/app.hpp"
#include "daemon/cli/docs.hpp"
#include "daemon/cli/once.hpp"
#include "daemon/cli/options.hpp"
#include "daemon/reload.hpp"
#include "daemon/setup.hpp"
#include "exporter/json/api.hpp"
#include "exporter/otlp/mapping.hpp"

namespace gpumeter {
namespace {

void print_error(const std::string& text) { std::fprintf(stderr, "%s\n", text.c_str()); }

// Signals are blocked before the first thread starts. A hanging thread still uses the clock and the app, so
// both live until the process ends.
int run_daemon(const Options& options, const config::Config& config, const Clock& clock) {
  Result<Signals> signals = Signals::block();
  if (!signals) {
    print_error("gpumeter: " + signals.error().message());
    return 1;
  }
  App app(options, config, clock);
  const int code = app.run(*signals);
  std::fflush(nullptr);
  if (app.left_behind()) _exit(code);
  return code;
}

int act_on(const Options& options, const config::Config& config, const Clock& clock) {
  switch (options.action) {
    case Action::check_config:
      return print("the configuration is valid\n");
    case Action::once:
      return print(page_once(config, options.argument == "0" ? 1 : 2));
    case Action::list_devices:
      return print(device_list(config));
    default:
      return run_daemon(options, config, clock);
  }
}

int reload(pid_t daemon, const Clock& clock) {
  // The reload may wait 3 s for a collector whose driver hangs and 2 s for a name service that hangs.
  constexpr auto kPatience = std::chrono::seconds(15);
  const Result<ReloadOutcome> outcome = request_reload(daemon, runtime_folder(), clock, kPatience);
  if (!outcome) {
    print_error("gpumeter: " + outcome.error().message());
    return 1;
  }
  for (const std::string& problem : outcome->problems) print_error(problem);
  if (!outcome->problems.empty())
    print_error("gpumeter: not reloaded; the previous configuration stays in force");
  return outcome->problems.empty() ? 0 : 1;
}

}  // namespace

int with_config(const Options& options, const Clock& clock, const UseConfig& use) {
  jobs::KnownUsers users(clock);
  std::vector<std::string> notes;
  const config::Loaded loaded = load_checked(options, clock, users, notes);
  for (const std::string& note : notes) print_error("gpumeter: " + note);
  for (const options::Problem& problem : loaded.problems) print_error(to_string(problem));
  const int code = use(loaded.problems.empty() ? &loaded.config : nullptr);
  std::fflush(nullptr);
  if (users.hangs()) _exit(code);
  return code;
}

int act(const Options& options) {
  const SystemClock clock;
  if (options.action == Action::print_metrics) {
    const bool is_markdown = options.argument == "markdown";
    return print(is_markdown ? metrics_markdown(builtin_collectors()) : metrics_text(builtin_collectors()));
  }
  if (options.action == Action::print_config) {
    return print(config::configuration_markdown(schema()));
  }
  if (options.action == Action::print_conditions) {
    return print(options.argument == "markdown" ? conditions_markdown() : conditions_json());
  }
  if (options.action == Action::print_events) return print(events::catalogue_markdown());
  if (options.action == Action::print_otlp) return print(otlp::markdown());
  if (options.action == Action::reload) return reload(std::stoi(options.argument), clock);
  return with_config(options, clock, [&](const config::Config* config) {
    return config != nullptr ? act_on(options, *config, clock) : 2;
  });
}

}  // namespace gpumeter
