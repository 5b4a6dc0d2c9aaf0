#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bounded_calls.hpp"
#include "base/clock.hpp"
#include "collectors/api/drm_use.hpp"
#include "collectors/sources/fdinfo/client.hpp"

/// The scan of /proc for clients of DRM devices: a look at one process, the account of one device, and the
/// scanner that runs both.
namespace gpumeter::fdinfo {

/// The order for a look at a process. Owns all of it, because a look that hangs outlives its scan.
struct LookOrder {
  std::string procfs;                ///< "/proc"
  std::string sysfs;                 ///< "/sys", to find the device of a descriptor
  std::vector<std::string> devices;  ///< only these are read: reading fdinfo wakes devices of some drivers
  std::shared_ptr<const Clock> clock;
  Nanoseconds until{};  ///< CLOCK_MONOTONIC; a look that begins later is not made
};

enum class LookOutcome : std::uint8_t {
  ok,
  skipped,  ///< the time is over
  ended,    ///< there is no such process, or it is a zombie
  kernel,   ///< a kernel thread, which has no descriptors
  denied,   ///< its descriptors may not be read
};

/// A process's DRM descriptors.
struct Look {
  LookOutcome outcome = LookOutcome::skipped;
  std::uint64_t start_ticks = 0;  ///< field 22 of /proc/PID/stat
  Nanoseconds at{};               ///< CLOCK_MONOTONIC, of the end of the look
  bool is_cut = false;            ///< it has more descriptors or clients than were read
  bool holds_drm = false;         ///< a descriptor of any DRM device, asked for or not
  std::vector<Client> clients;    ///< each client of the asked devices once
  unsigned malformed = 0;         ///< lines, see Text
};

/// Reads the process's stat, the type of each of its descriptors, and the fdinfo of those that are DRM
/// devices (character devices with major 226 or 261). May hang in a driver. A process that holds very many
/// descriptors is read up to order.until and some milliseconds.
Look look_at(const LookOrder& order, int pid);

/// True if two descriptors are one open file, by kcmp(2), for kernels before 5.19, whose fdinfo has no client
/// id. nullopt: the kernel refuses to compare them.
std::optional<bool> is_same_file(int pid, int fd, int other_pid, int other_fd) noexcept;

/// Busy time by class, from additions by kind of engine. Kinds of one class work at the same time, so a scan
/// adds only the busiest of them to the class.
class EngineSums {
 public:
  /// Adds seconds of the scan under way; also of 0, for a client that reports the engine.
  void add(std::size_t name, double seconds) noexcept { added_[name] = added_[name].value_or(0) + seconds; }

  /// Ends the scan.
  void settle() noexcept {
    EngineSeconds classes;
    for (std::size_t i = 0; i < kEngineNameCount; ++i) {
      if (!added_[i]) continue;
      std::optional<double>& most = classes[static_cast<std::size_t>(kEngineNames[i].engine)];
      most = std::max(most.value_or(0), *added_[i]);
    }
    for (std::size_t i = 0; i < kEngineClassCount; ++i) {
      if (classes[i]) seconds_[i] = seconds_[i].value_or(0) + *classes[i];
    }
    added_ = {};
  }

  /// Of the scans that have ended; never falls.
  const EngineSeconds& seconds() const noexcept { return seconds_; }

 private:
  std::array<std::optional<double>, kEngineNameCount> added_{};
  EngineSeconds seconds_{};
};

/// A process that held DRM descriptors at the last look.
struct Holder {
  std::uint64_t start_ticks = 0;
  Nanoseconds at{};       ///< CLOCK_MONOTONIC, of the look
  bool is_fresh = false;  ///< looked at in the scan that ends
  bool is_new = false;    ///< started after the previous scan
  std::vector<Client> clients;
};

/// The use of one device, from the clients of its holders at each scan. A client that several processes hold
/// counts once, for the lowest pid. A client counts from the reading with which it was first seen; only a
/// client of a process that started after the previous scan counts from 0. One thread.
class DeviceAccount {
 public:
  using Holders = std::map<int, Holder>;  // by pid

  /// Takes the state after a scan. `has_read_all`: all holders are fresh.
  void take(const std::string& device, const Holders& holders, Nanoseconds now, bool has_read_all);

  /// The time before the next scan is not observed, and all clients count from their next reading.
  void interrupt() noexcept;

  /// The state after the last scan.
  DrmUse use(unsigned inaccessible) const;

 private:
  struct Id {
    std::uint64_t number = 0;  ///< the driver's; without one, the descriptor of the first holder
    int pid = 0;               ///< 0 for the driver's
    auto operator<=>(const Id&) const = default;
  };
  struct Reading {
    int owner = 0;
    Nanoseconds at{};
    bool is_fresh = false;
    bool is_new = false;
    Client client;
  };
  struct Count {
    bool in_cycles = false;
    std::uint64_t count = 0;
    std::uint64_t total_cycles = 0;
    Nanoseconds at{};
  };
  using Known = std::map<std::size_t, Count>;  // a client's engines, by place in kEngineNames
  struct User {
    std::uint64_t start_ticks = 0;
    bool is_present = false;
    EngineSums busy;
    ClientMemory memory;
  };

  std::map<Id, Reading> merged(const std::string& device, const Holders& holders) const;
  Id id_of(const std::map<Id, Reading>& so_far, int pid, const Client& client) const;
  void learn_clocks(const std::map<Id, Reading>& readings);
  void count(const Id& id, const Reading& reading, User& user);
  std::optional<double> seconds_of(const EngineCount& now, const Count* before, bool from_zero) const;

  std::map<Id, Known> known_;
  std::map<int, User> users_;  // by pid
  EngineSums busy_;
  std::array<double, kEngineNameCount> seconds_per_cycle_{};  // 0: unknown
  Nanoseconds now_{};
  Nanoseconds observed_{};
  std::optional<Nanoseconds> complete_;  // the last scan that had read all holders
};

/// Finds the clients of DRM devices in /proc. A scan looks at the processes that are known to hold a device,
/// at new processes, and at the others from time to time: after half of the time since they were first seen,
/// at most after a minute. It has a budget of time; processes that it does not reach are the first of the
/// next scan. One thread, which a hanging look delays by at most two seconds, once.
class Scanner {
 public:
  /// Time for looks in one scan: 1 % of the default interval.
  static constexpr Nanoseconds kBudget = std::chrono::milliseconds(50);
  static constexpr Nanoseconds kLookAgain = std::chrono::minutes(1);
  /// Further processes are not looked at.
  static constexpr std::size_t kMostProcesses = 32768;

  using LookAt = std::function<Look(const LookOrder&, int pid)>;
  struct Sources {
    std::string procfs;
    std::string sysfs;
    std::shared_ptr<HangingCalls> hanging;  ///< null: a ledger of its own
    LookAt look = look_at;
    std::shared_ptr<const Clock> clock = std::make_shared<SystemClock>();  ///< shared with looks that hang
    int own_pid = 0;                                                       ///< is not looked at; 0: all are
  };

  explicit Scanner(Sources sources);

  struct Result {
    /// False during the first round over all processes. Scans should then follow soon, and have no uses.
    bool is_whole = false;
    Nanoseconds duration{};
    unsigned inaccessible =
        0;  ///< processes whose descriptors are not all read: not allowed, too many, or the look hangs
    std::uint64_t malformed = 0;                                             ///< lines in this scan
    std::map<std::string, std::shared_ptr<const DrmUse>, std::less<>> uses;  ///< by device
  };

  /// `every`: the interval of scans. After a much longer pause the scanner starts again, as at first.
  Result scan(const std::vector<std::string>& devices, Nanoseconds every);

  /// Forgets the processes, and keeps the devices' totals.
  void forget();

 private:
  struct Known {
    std::uint64_t start_ticks = 0;
    Nanoseconds first_seen{};
    Nanoseconds next_look{};
    bool is_seen = false;
    bool is_inaccessible = false;
  };

  std::vector<int> listed() const;
  void keep_only(const std::vector<int>& pids);
  std::vector<std::string> due(Nanoseconds now) const;
  void take(int pid, Look look, Nanoseconds every, Result& result);
  void take_silent(int pid, Nanoseconds now);
  bool started_since_last_scan(std::uint64_t start_ticks) const;
  void settle(const std::vector<std::string>& devices, Result& result);

  const Sources sources_;
  const Clock& clock_;  // of sources_
  BoundedCalls looks_;
  std::map<int, Known> known_;  // by pid
  DeviceAccount::Holders holders_;
  std::map<std::string, DeviceAccount> accounts_;
  std::size_t unlisted_ = 0;  // processes beyond kMostProcesses
  bool is_whole_ = false;
  std::optional<Nanoseconds> last_scan_;       // CLOCK_MONOTONIC, its start
  std::optional<Nanoseconds> last_scan_boot_;  // the same in CLOCK_BOOTTIME, by which processes start
};

}  // namespace gpumeter::fdinfo
