#pragma once

#include <functional>
#include <memory>

#include "base/log.hpp"
#include "base/worker.hpp"
#include "collectors/jobs/join/run_join.hpp"
#include "collectors/servers/finder.hpp"
#include "daemon/service.hpp"
#include "exporter/store/store.hpp"

namespace gpumeter {

/// Reads the metrics pages of model servers on a thread of its own ("servers"), because a server may answer
/// late, and the lookup of a name may hang.
class ModelServers final : public Service {
 public:
  /// The processes on each device. Called on the thread; must not block.
  using Devices = std::function<jobs::DeviceUses()>;

  /// Returns null if the configuration names no server and does not look for any. `clock`, `log` and `store`
  /// must outlive the thread.
  static std::unique_ptr<ModelServers> make(const servers::Settings& settings, Nanoseconds interval,
                                            servers::Finder::Roots roots, Devices devices, Store& store,
                                            Log& log, const Clock& clock);

  Result<Done> start() override;
  void request_stop() override { worker_.request_stop(); }
  bool join(Nanoseconds deadline) override { return worker_.join(deadline); }

 private:
  class Turn;

  ModelServers(std::shared_ptr<Turn> turn, const Clock& clock);

  const std::shared_ptr<Turn> turn_;  ///< shared with the thread, which may outlive this object
  Worker worker_;
};

}  // namespace gpumeter
