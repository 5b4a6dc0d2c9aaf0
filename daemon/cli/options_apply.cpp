#include <algorithm>
#include <filesystem>
#include <iterator>

#include "config/keys.hpp"
#include "daemon/cli/options.hpp"

namespace gpumeter {

void apply(const Options& options, config::Config& config) {
  // Checked by parse_options(), so that set() has nothing to complain of.
  for (const auto& [path, values] : options.overrides) config::set(config, path, values);
  for (auto& [name, collector] : config.collectors) {
    using config::Enabled;
    if (options.disable_defaults && collector.enabled == Enabled::automatic) collector.enabled = Enabled::off;
    const auto chosen = options.collectors.find(name);
    if (chosen != options.collectors.end()) collector.enabled = chosen->second ? Enabled::on : Enabled::off;
    if (options.simulate) collector.enabled = name == "simulated" ? Enabled::on : Enabled::off;
  }
  const auto simulated = config.collectors.find("simulated");
  if (simulated == config.collectors.end()) return;
  auto& keys = simulated->second.options;
  if (options.simulate) keys["devices"] = {std::to_string(*options.simulate)};
  auto& events = keys["events"];
  std::copy(options.simulate_events.begin(), options.simulate_events.end(), std::back_inserter(events));
}

config::Loaded load_config(const Options& options, config::Schemas schemas, config::Places* places) {
  std::string file = options.config_file;
  std::error_code error;
  if (file.empty() && std::filesystem::exists(kDefaultConfigFile, error)) file = kDefaultConfigFile;
  config::Loaded loaded =
      file.empty() ? config::Loaded(config::defaults(schemas)) : config::load_file(file, schemas, places);
  if (auto* config = std::get_if<config::Config>(&loaded)) apply(options, *config);
  return loaded;
}

}  // namespace gpumeter
