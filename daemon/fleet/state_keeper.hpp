#pragma once

#include <memory>
#include <string>

#include "base/log.hpp"
#include "base/worker.hpp"
#include "daemon/fleet/device_directory.hpp"
#include "daemon/state/figures_file.hpp"

namespace gpumeter {

/// Reads and writes the state folder on a separate thread ("state"): the directory of devices whenever it
/// changes, the figures every 10 s and at the end, their copy every second and after
/// each page. Figures of another machine are ignored. A file of figures that is damaged is set aside as
/// figures.state.bad and reported; the figures then start from 0. If the disk or mount hangs, only that
/// thread hangs, and is left behind.
class StateKeeper {
 public:
  /// `folders.state` is paths.state. `clock` and `log` must outlive the keeper. If stop() returns false, they
  /// must live until the process ends. Without `figures` only the directory is kept.
  StateKeeper(FiguresFolders folders, const Clock& clock, Log& log, KeptFigures figures = {});
  ~StateKeeper();
  StateKeeper(const StateKeeper&) = delete;
  StateKeeper& operator=(const StateKeeper&) = delete;

  /// Starts the thread and waits until `deadline` (monotonic) for the directory on the disk. If the directory
  /// cannot be read in time, the keeper logs an error and returns an empty one. The file then stays unchanged
  /// until the next start. The same holds if another daemon uses the folder: its directory is read, never
  /// written.
  DeviceDirectory load(Nanoseconds deadline);

  /// Schedules a write of the directory: at once, or 1 s after the last write. Only the latest directory
  /// counts. If a write fails, the thread retries after 5 s. Does not block. Any thread.
  void save(const DeviceDirectory& directory);

  /// A page was served: schedules a copy of the figures, which are at least those of the page. Does not
  /// block. Any thread.
  void copy_soon();

  /// Writes the pending directory and the figures, and ends the thread; blocks until `deadline` (monotonic).
  /// Returns false if the folder does not answer and the thread was left behind.
  bool stop(Nanoseconds deadline);

 private:
  class Folder;

  const Clock& clock_;
  Log& log_;
  const std::shared_ptr<Folder> folder_;  ///< shared with the thread, which may outlive this object
  Worker worker_;
};

}  // namespace gpumeter
