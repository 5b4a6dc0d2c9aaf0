#include "daemon/servers/model_servers.hpp"

#include <utility>

#include "collectors/servers/watch.hpp"

namespace gpumeter {

class ModelServers::Turn {
 public:
  Turn(const servers::Settings& settings, Nanoseconds interval, servers::Finder::Roots roots, Devices devices,
       Store& store, Log& log, const Clock& clock)
      : clock_(clock),
        interval_(interval),
        watch_(settings,
               {.device_uses = std::move(devices),
                .fetch = servers::fetch,
                .say = [&log](const auto& notice) { say(log, notice); },
                .roots = std::move(roots)},
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

std::unique_ptr<ModelServers> ModelServers::make(const servers::Settings& settings, Nanoseconds interval,
                                                 servers::Finder::Roots roots, Devices devices, Store& store,
                                                 Log& log, const Clock& clock) {
  if (!settings.enabled && settings.targets.empty()) return nullptr;
  auto turn =
      std::make_shared<Turn>(settings, interval, std::move(roots), std::move(devices), store, log, clock);
  return std::unique_ptr<ModelServers>(new ModelServers(std::move(turn), clock));
}

ModelServers::ModelServers(std::shared_ptr<Turn> turn, const Clock& clock)
    : turn_(std::move(turn)), worker_(clock) {}

Result<Done> ModelServers::start() {
  return worker_.start("servers", [turn = turn_] { return turn->run(); });
}

}  // namespace gpumeter
