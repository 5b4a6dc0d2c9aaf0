#pragma once

#include <memory>
#include <string>

#include "base/abandonable_thread.hpp"
#include "base/clock.hpp"
#include "daemon/fleet/device_directory.hpp"
#include "daemon/log/log.hpp"

namespace gpumeter {

/// Reads and writes the state folder on a thread of its own ("state"): a disk or a mount that hangs takes
/// nobody along, and its thread is left behind.
class StateKeeper {
 public:
  /// `folder` is paths.state. `clock` and `log` must outlive the keeper, and the process where stop() says
  /// false.
  StateKeeper(std::string folder, const Clock& clock, Log& log);
  ~StateKeeper();
  StateKeeper(const StateKeeper&) = delete;
  StateKeeper& operator=(const StateKeeper&) = delete;

  /// Starts the thread and waits until `deadline` (monotonic) for what is on the disk. If that cannot be read
  /// in time, the log has an error, the directory starts empty, and the file stays as it is until the next
  /// start.
  DeviceDirectory load(Nanoseconds deadline);

  /// Writes the directory soon: at once, or a second after the last write. Only the latest one counts. What
  /// cannot be written is tried again after 5 s. Waits for nothing. Any thread.
  void save(const DeviceDirectory& directory);

  /// Writes what is still to be written and ends the thread; waits until `deadline` (monotonic). False: the
  /// folder does not answer, and the thread was left behind.
  bool stop(Nanoseconds deadline);

 private:
  struct State;
  static void run(State& state) noexcept;

  const Clock& clock_;
  Log& log_;
  const std::shared_ptr<State> state_;  ///< the thread's too, which may outlive this object
  AbandonableThread thread_;
};

}  // namespace gpumeter
