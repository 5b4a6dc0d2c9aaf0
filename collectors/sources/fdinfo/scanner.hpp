#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bounded_calls.hpp"
#include "collectors/sources/fdinfo/accounts.hpp"
#include "collectors/sources/fdinfo/look.hpp"

namespace gpumeter::fdinfo {

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
