#pragma once

#include <functional>
#include <optional>
#include <string>

#include "daemon/log/log.hpp"
#include "daemon/state/saved_state.hpp"

namespace gpumeter {

/// The figures that survive a restart. Thread "state" calls both functions, also when the daemon was left
/// behind by a folder that hangs: they own what they touch.
struct KeptFigures {
  /// Takes the figures of an earlier process. Called at most once, before load() returns. An Error means that
  /// they are not understood: the file is set aside.
  std::function<Result<Done>(const SavedState&)> restore;
  /// Returns the figures now; called every 10 s and at the end.
  std::function<StateSections()> collect;
};

/// Where the machine states its identity.
struct MachineFiles {
  std::string machine_id = "/etc/machine-id";               ///< machine-id(5)
  std::string boot_id = "/proc/sys/kernel/random/boot_id";  ///< random(4)
};

/// `figures.state` in the state folder. Thread "state"; each call blocks for as long as the folder does,
/// except restore().
class FiguresFile {
 public:
  static constexpr const char* kName = "figures.state";
  /// A crash loses at most this much.
  static constexpr Nanoseconds kEvery = std::chrono::seconds(10);

  FiguresFile(std::string folder, const Clock& clock, Log& log, KeptFigures figures,
              MachineFiles machine = {});

  /// Reads the file, and reports it and sets it aside if it is damaged.
  void read();
  /// Gives the figures that were read to their owners. Does not block. An Error is for report().
  Result<Done> restore();
  /// Reports figures that were not understood, and sets their file aside.
  void report(const Result<Done>& restored);

  /// Writes the figures if the last write is 10 s ago. Returns the time until the next one.
  Nanoseconds save_if_due();
  /// Writes the figures now. Logs the first of several failures.
  void save();

 private:
  std::string path() const { return folder_ + "/" + kName; }
  void reject(const std::string& why);

  const std::string folder_;
  const Clock& clock_;
  Log& log_;
  const KeptFigures figures_;
  const MachineFiles machine_;
  std::string machine_id_;
  std::string boot_id_;
  std::optional<SavedState> found_;  // until restore()
  std::optional<Nanoseconds> next_;  // CLOCK_MONOTONIC
  bool has_failed_ = false;
};

}  // namespace gpumeter
