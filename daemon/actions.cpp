#include "daemon/actions.hpp"

#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>

#include "collectors/builtin.hpp"
#include "config/markdown.hpp"
#include "daemon/app.hpp"
#include "daemon/list_devices.hpp"
#include "daemon/metrics_docs.hpp"
#include "daemon/once.hpp"
#include "daemon/standard_streams.hpp"

namespace gpumeter {
namespace {

// A thread that hangs still uses the clock and the app, so neither ends before the process.
int run_daemon(const Options& options, const config::Config& config, const Clock& clock) {
  App app(options, config, clock);
  const int code = app.run();
  std::fflush(nullptr);
  if (app.left_behind()) _exit(code);
  return code;
}

int act_on(const Options& options, const config::Config& config, const Clock& clock) {
  switch (options.action) {
    case Action::check_config:
      return print("the configuration is valid\n");
    case Action::once: {
      Result<std::string> page = page_once(config, options.passes);
      if (page) return print(*page);
      std::fprintf(stderr, "gpumeter: %s\n", page.error().message().c_str());
      return 1;
    }
    case Action::list_devices:
      return print(device_list(config));
    default:
      return run_daemon(options, config, clock);
  }
}

}  // namespace

int act(const Options& options) {
  const SystemClock clock;
  if (options.action == Action::print_metrics) {
    const bool markdown = options.print_format == "markdown";
    return print(markdown ? metrics_markdown(builtin_collectors()) : metrics_text(builtin_collectors()));
  }
  if (options.action == Action::print_config) {
    return print(config::configuration_markdown(schemas_of(builtin_collectors())));
  }
  const config::Loaded loaded = load_checked(options, clock);
  if (const auto* config = std::get_if<config::Config>(&loaded)) return act_on(options, *config, clock);
  for (const config::Problem& problem : std::get<1>(loaded)) {
    std::fprintf(stderr, "%s\n", config::to_string(problem).c_str());
  }
  return 2;
}

}  // namespace gpumeter
