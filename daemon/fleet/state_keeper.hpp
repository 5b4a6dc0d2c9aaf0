#pragma once

#include <memory>
#include <string>

#include "base/worker.hpp"
#include "daemon/fleet/device_directory.hpp"
#include "daemon/log/log.hpp"

namespace gpumeter {

/// Reads and writes the state folder on a thread of its own ("state"): if the disk or mount hangs, only that
/// thread hangs, and is left behind.
class StateKeeper {
 public:
  /// `folder` is paths.state. `clock` and `log` must outlive the keeper, and the process if stop() returns
  /// false.
  StateKeeper(std::string folder, const Clock& clock, Log& log);
  ~StateKeeper();
  StateKeeper(const StateKeeper&) = delete;
  StateKeeper& operator=(const StateKeeper&) = delete;

  /// Starts the thread and waits until `deadline` (monotonic) for the directory on the disk. If it cannot be
  /// read in time, the keeper logs an error, the directory starts empty, and the file stays as it is until
  /// the next start.
  DeviceDirectory load(Nanoseconds deadline);

  /// Writes the directory soon: at once, or a second after the last write. Only the latest one counts. If a
  /// write fails, the thread retries after 5 s. Does not block. Any thread.
  void save(const DeviceDirectory& directory);

  /// Writes the directory that is still waiting and ends the thread; blocks until `deadline` (monotonic).
  /// False: the folder does not answer, and the thread was left behind.
  bool stop(Nanoseconds deadline);

 private:
  class Folder;

  const Clock& clock_;
  Log& log_;
  const std::shared_ptr<Folder> folder_;  ///< the thread's too, which may outlive this object
  Worker worker_;
};

}  // namespace gpumeter
