#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.hpp"
#include "base/folder.hpp"
#include "base/log.hpp"
#include "base/mutex.hpp"
#include "base/result.hpp"
#include "base/worker.hpp"
#include "collectors/api/machine.hpp"

namespace gpumeter {

/// Files of the state folder. Every call blocks for as long as the folder does: thread "state", and commands.

/// As StateDirectoryMode= of the service.
inline constexpr mode_t kStateFolderMode = 0750;

/// Returns the contents of a regular file of at most `most` bytes.
Result<std::string> read_state_file(const std::string& path, std::size_t most);

/// Replaces a file of the folder atomically. It gets the owner of the folder, so that the service can read
/// what root wrote. Creates the folder if it is missing.
Result<Done> replace_state_file(const std::string& folder, const std::string& name, const std::string& text,
                                Folder::Outlives event = Folder::Outlives::power_cut);

/// Renames a damaged file to NAME.bad, so that a person can examine it.
void set_aside(const std::string& path);

/// Returns the id in a file as described by machine-id(5); empty if the machine has none yet.
std::string machine_id_in(const std::string& path);

/// Figures that survive a restart, as one part of the daemon writes them (base/records.hpp), by the part's
/// name.
using StateSections = std::map<std::string, std::string>;

/// The contents of `figures.state` in the state folder.
///
///     gpumeter-state TAB 1 TAB machine-id TAB boot-id TAB Unix time in ns
///     section TAB name TAB number of its lines
///     ...
///     end TAB CRC-32 of all lines before this one, in hexadecimal digits
struct SavedState {
  std::string machine_id;  ///< machine-id(5); empty: the machine has none
  std::string boot_id;     ///< /proc/sys/kernel/random/boot_id; empty: unknown
  Nanoseconds saved_at{};  ///< CLOCK_REALTIME
  StateSections sections;
  /// Not in the file. True if the machine has not been booted since: the same processes may still run, the
  /// clocks continue, and so do the drivers' counters.
  bool is_of_this_boot = false;

  const std::string& section(const std::string& name) const;
};

/// CRC-32 in 8 hexadecimal digits.
std::string checksum_of(std::string_view text);

std::string encode(const SavedState& state);

/// Returns an Error for a text that is cut, changed or of another version; never a part of it.
Result<SavedState> decode(std::string_view text);

/// The figures that survive a restart. Thread "state" calls both functions, also when the daemon was left
/// behind by a folder that hangs: they own what they touch.
struct KeptFigures {
  /// Takes the figures of an earlier process. Called at most once, before load() returns. An Error means that
  /// they are not understood: the file is set aside.
  std::function<Result<Done>(const SavedState&)> restore;
  /// Returns the figures now; called every second and at the end.
  std::function<StateSections()> collect;
};

/// Where the machine states its identity.
struct MachineFiles {
  std::string machine_id = "/etc/machine-id";               ///< machine-id(5)
  std::string boot_id = "/proc/sys/kernel/random/boot_id";  ///< random(4)
};

/// The folders of `figures.state`.
struct FiguresFolders {
  std::string state;  ///< written every 10 s; outlives a power cut
  /// In memory; the copy is written every second and outlives a crash. Empty: the copy is in `state`.
  std::string runtime = {};
};

/// `figures.state` in the state folder, and a newer copy in the runtime folder, or in `figures.copy` of the
/// state folder if there is none. The copy makes sure that no counter is lower after a crash than it was on
/// the last page, which Prometheus would take for a reset. Thread "state"; each call blocks for as long as
/// the folder does, except restore().
class FiguresFile {
 public:
  static constexpr const char* kName = "figures.state";
  /// A power cut loses at most this much.
  static constexpr Nanoseconds kEvery = std::chrono::seconds(10);
  /// A crash loses at most this much.
  static constexpr Nanoseconds kCopyEvery = std::chrono::seconds(1);
  /// The shortest time between two copies, however often a page is served.
  static constexpr Nanoseconds kBetweenCopies = std::chrono::milliseconds(100);
  /// A copy takes at most this part of a processor: large ones are made less often.
  static constexpr int kCopyShare = 100;

  FiguresFile(FiguresFolders folders, const Clock& clock, Log& log, KeptFigures figures,
              MachineFiles machine = {});

  /// Reads the file and the copy. Reports the file and sets it aside if it is damaged.
  void read();
  /// Gives the newer of the figures that were read to their owners. Does not block. An Error is for report().
  Result<Done> restore();
  /// Reports figures that were not understood, and sets their file aside.
  void report(const Result<Done>& restored);

  /// Writes the figures if the last write is 10 s ago, else the copy if it is 1 s old or a page with newer
  /// figures `was_served`. Returns the time until the next write.
  Nanoseconds save_if_due(bool was_served);
  /// Writes the figures for the last time. The copy goes once the file has them.
  void save_last();

 private:
  std::string path() const { return folders_.state + "/" + kName; }
  const std::string& copy_folder() const {
    return folders_.runtime.empty() ? folders_.state : folders_.runtime;
  }
  const char* copy_name() const { return folders_.runtime.empty() ? "figures.copy" : kName; }
  std::string copy_path() const { return copy_folder() + "/" + copy_name(); }
  std::optional<SavedState> read_file(bool has_copy);
  std::optional<SavedState> read_copy();
  bool is_foreign(const SavedState& state) const;
  bool is_of_this_boot(const SavedState& state) const;
  void reject(const std::string& path, const std::string& why);
  bool save();
  void copy();
  struct Notices {
    std::string_view failed, works;
  };
  bool write(const std::string& folder, const char* name, const SavedState& state, Folder::Outlives event,
             bool& has_failed, const Notices& notices);
  SavedState now() const;

  const FiguresFolders folders_;
  const Clock& clock_;
  Log& log_;
  const KeptFigures figures_;
  const MachineFiles machine_;
  std::string machine_id_;
  std::string boot_id_;
  std::optional<SavedState> found_;  // until restore()
  std::string found_path_;
  std::optional<Nanoseconds> next_;  // CLOCK_MONOTONIC, as are the next two
  Nanoseconds next_copy_ = Worker::kForever;
  Nanoseconds earliest_copy_{};        // of a page that was served
  std::optional<std::size_t> copied_;  // hash of the sections in the copy
  bool has_failed_ = false;
  bool has_copy_failed_ = false;
};

/// The runs of jobs on their way between the thread "jobs" and the thread "state". Any thread.
struct RunsShelf {
  Topic<StateSections> now;
  /// Of an earlier process. Those of this boot are the runs now until the thread "jobs" publishes newer ones:
  /// a crash before that loses nothing.
  Topic<SavedState> earlier;
};

}  // namespace gpumeter
