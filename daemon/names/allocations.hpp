#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/paths.hpp"
#include "base/worker.hpp"
#include "collectors/api/device_identity.hpp"
#include "collectors/attribution/allocation/meter.hpp"
#include "collectors/attribution/allocation/settings.hpp"
#include "collectors/attribution/list_request.hpp"
#include "collectors/attribution/names/name_book.hpp"
#include "collectors/attribution/names/slurm/folder.hpp"
#include "daemon/service.hpp"
#include "exporter/store/store.hpp"

namespace gpumeter {

/// Reads who was given which GPU from the folders of Slurm's prolog, of `gpumeter allocate` and of
/// gpumeter-held, and keeps the series of all sources' allocations in the store. Requests lists of processes
/// when a job or a pod begins. Has a thread of its own ("allocations"), because the folders' file systems may
/// hang.
class Allocations final : public Service {
 public:
  /// All known devices, by index. Called on the thread.
  using Devices = std::function<std::vector<DeviceIdentity>()>;

  /// The control group of a job or a pod has just been created: called at the times of
  /// workloads::ListRequest::kAfter, on the thread; must not block.
  using Begun = std::function<void()>;

  /// What is shared with other parts.
  struct Shared {
    std::shared_ptr<workloads::NameBook> names;     ///< with the other sources of names
    std::shared_ptr<workloads::ListRequest> lists;  ///< with the lanes
    Devices devices;
    Begun begun;
    Paths paths;
    Nanoseconds lists_every;  ///< the interval of the lists of processes
  };
  /// `clock`, `log` and `store` must outlive the thread.
  Allocations(allocation::Settings settings, Shared shared, Store& store, Log& log, const Clock& clock);

  Result<Done> start() override;
  void request_stop() override { worker_.request_stop(); }
  bool join(Nanoseconds deadline) override { return worker_.join(deadline); }

 private:
  class Turn;

  const std::shared_ptr<Turn> turn_;  ///< shared with the thread, which may outlive this object
  Worker worker_;
};

}  // namespace gpumeter
