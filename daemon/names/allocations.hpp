#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/worker.hpp"
#include "collectors/api/device_identity.hpp"
#include "collectors/attribution/allocation/meter.hpp"
#include "collectors/attribution/names/name_book.hpp"
#include "collectors/attribution/names/slurm/folder.hpp"
#include "daemon/log/log.hpp"
#include "exporter/store/store.hpp"

namespace gpumeter {

/// Reads who was given which GPU from the folders of Slurm's prolog and of `gpumeter allocate`, and keeps the
/// series of all sources' allocations in the store. Has a thread of its own ("allocations"), because the
/// folders' file systems may hang.
class Allocations {
 public:
  struct Settings {
    slurm::Folder::Settings slurm;  ///< an empty path: none
    std::string manual;             ///< folder of `gpumeter allocate`; empty: none
    allocation::Meter::Settings meter;
  };
  /// All known devices, by index. Called on the thread.
  using Devices = std::function<std::vector<DeviceIdentity>()>;

  /// `book` is shared with the other sources of names. `clock`, `log` and `store` must outlive the thread.
  Allocations(Settings settings, std::shared_ptr<workloads::NameBook> book, Devices devices, Store& store,
              Log& log, const Clock& clock);

  Result<Done> start();
  void request_stop() { worker_.request_stop(); }
  /// False: a file system hangs, and the thread was left behind.
  bool join(Nanoseconds deadline) { return worker_.join(deadline); }

 private:
  class Turn;

  const std::shared_ptr<Turn> turn_;  ///< shared with the thread, which may outlive this object
  Worker worker_;
};

}  // namespace gpumeter
