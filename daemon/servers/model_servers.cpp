#include "daemon/servers/model_servers.hpp"

#include <utility>

#include "base/text.hpp"
#include "collectors/servers/watch.hpp"

namespace gpumeter {
namespace {

servers::Watch::Settings settings_of(const config::Config& config) {
  servers::Watch::Settings settings;
  settings.procfs = config.paths.procfs;
  for (const std::string& text : config.servers.targets) {
    if (Result<servers::Target> target = servers::parse_target(text)) settings.targets.push_back(*target);
  }
  if (!config.servers.enabled) return settings;
  servers::Finder::Settings& find = settings.find.emplace();
  for (const std::string& port : config.servers.ports) {
    find.ports.insert(parse_number<std::uint16_t>(port).value_or(0));
  }
  find.processes = {config.servers.processes.begin(), config.servers.processes.end()};
  find.procfs = config.paths.procfs;
  find.cgroups = config.paths.sysfs + "/fs/cgroup";
  return settings;
}

}  // namespace

class ModelServers::Turn {
 public:
  Turn(const config::Config& config, Devices devices, Store& store, Log& log, const Clock& clock)
      : clock_(clock),
        interval_(config.sampling.normal),
        watch_(settings_of(config),
               {std::move(devices), servers::fetch, [&log](const auto& notice) { say(log, notice); }},
               store.attach()) {}

  Nanoseconds run() {
    watch_.update(clock_.monotonic());
    return interval_;
  }

 private:
  static void say(Log& log, const servers::Watch::Notice& notice) {
    if (notice.error.empty()) return log.info(notice.message + " is read", {{"server", notice.server}});
    log.warn(notice.message + " is not read; gpumeter retries",
             {{"server", notice.server}, {"error", notice.error}});
  }

  const Clock& clock_;
  const Nanoseconds interval_;
  servers::Watch watch_;
};

std::unique_ptr<ModelServers> ModelServers::make(const config::Config& config, Devices devices, Store& store,
                                                 Log& log, const Clock& clock) {
  if (!config.servers.enabled && config.servers.targets.empty()) return nullptr;
  auto turn = std::make_shared<Turn>(config, std::move(devices), store, log, clock);
  return std::unique_ptr<ModelServers>(new ModelServers(std::move(turn), clock));
}

ModelServers::ModelServers(std::shared_ptr<Turn> turn, const Clock& clock)
    : turn_(std::move(turn)), worker_(clock) {}

Result<Done> ModelServers::start() {
  return worker_.start("servers", [turn = turn_] { return turn->run(); });
}

}  // namespace gpumeter
