#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.hpp"
#include "base/mutex.hpp"
#include "base/scheduler.hpp"
#include "collectors/api/machine.hpp"
#include "collectors/api/part.hpp"
#include "config/config.hpp"
#include "exporter/store/store.hpp"

namespace gpumeter {

/// The table of parts, in the order in which they are opened.
std::span<const PartEntry* const> builtin_parts();
/// Those that work while a recording replaces the machine.
std::span<const PartEntry* const> parts_of_recording();

/// Opens parts and gives them their turns. If a turn is late, its part alone waits: its series leave the
/// page, gpumeter_part_up is 0, and one line of the log reports it; another reports its return. The owner's
/// thread calls everything except where stated.
class PartHost {
 public:
  /// What parts get. All must outlive the host and, if Scheduler::stop() left a turn behind, the process must
  /// end by _exit().
  struct Environment {
    Store& store;
    Machine& machine;
    const Clock& clock;
    Log& log;
    const Paths& paths;
  };
  PartHost(Environment environment, Scheduler& scheduler)
      : environment_(environment), scheduler_(scheduler) {}
  PartHost(const PartHost&) = delete;
  PartHost& operator=(const PartHost&) = delete;

  /// The sections of an earlier process (Keeps), before open(). Any thread.
  void resume(std::map<std::string, std::string> sections, bool is_of_this_boot) GPUMETER_EXCLUDES(mutex_);
  /// Opens those parts of `entries` that the configuration enables. A section that a part does not understand
  /// is reported, and the part starts from 0. A part that reads the store has its first turn with begin().
  void open(std::span<const PartEntry* const> entries, std::shared_ptr<const config::Config> config);
  /// Opens again those parts whose keys have other values; what they keep goes on. A turn that does not end
  /// until `deadline` (CLOCK_MONOTONIC) is left behind.
  void reload(std::shared_ptr<const config::Config> config, Nanoseconds deadline) GPUMETER_EXCLUDES(mutex_);
  /// The first pass over the devices has ended, or takes too long: all parts have a turn now. Any thread.
  void begin() GPUMETER_EXCLUDES(mutex_);
  /// True after begin() when each part has had its turn or is late: the page has what parts read of the
  /// devices. Any thread.
  bool have_begun() const GPUMETER_EXCLUDES(mutex_);

  /// The sections of all parts that keep something, as of their last turns. Any thread.
  std::map<std::string, std::string> sections() const GPUMETER_EXCLUDES(mutex_);

  struct State {
    std::string_view name;
    bool is_up;
    bool operator==(const State&) const = default;
  };
  /// Any thread.
  std::vector<State> states() const GPUMETER_EXCLUDES(mutex_);

 private:
  struct Opened;

  void open(const PartEntry& entry) GPUMETER_EXCLUDES(mutex_);
  void close(const PartEntry& entry, Nanoseconds deadline) GPUMETER_EXCLUDES(mutex_);
  Result<Done> resume(const PartEntry& entry, Keeps& part) const GPUMETER_EXCLUDES(mutex_);
  void note_late(Opened& opened, bool is_late);

  const Environment environment_;
  Scheduler& scheduler_;
  std::span<const PartEntry* const> entries_;
  std::shared_ptr<const config::Config> config_;
  std::atomic<bool> has_begun_ = false;
  mutable Mutex mutex_;
  std::map<std::string, std::string> earlier_ GPUMETER_GUARDED_BY(mutex_);
  bool is_of_this_boot_ GPUMETER_GUARDED_BY(mutex_) = false;
  std::vector<std::shared_ptr<Opened>> parts_
      GPUMETER_GUARDED_BY(mutex_);  ///< shared with turns that are left behind
};

}  // namespace gpumeter
