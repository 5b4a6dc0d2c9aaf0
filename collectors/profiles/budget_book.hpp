#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "base/result.hpp"
#include "collectors/jobs/model/run_list.hpp"

namespace gpumeter::profiles {

using jobs::RunName;

/// The limits of profiles that conditions cause.
struct Budget {
  unsigned per_run = 3;  ///< in 24 hours
  unsigned per_host = 10;
  Nanoseconds cooldown = std::chrono::hours(1);  ///< between two of a run
  bool operator==(const Budget&) const = default;
};

/// The profiles that conditions took in the last 24 hours, at most `per_host`, and whether the budget permits
/// another one. Survives a restart and a reboot. Any thread.
class BudgetBook {
 public:
  /// `clock` must outlive this object.
  BudgetBook(const Budget& budget, const Clock& clock) : budget_(budget), clock_(clock) {}

  /// Returns why no condition may profile the run now; nullopt: it may.
  std::optional<std::string> refusal(const RunName& run) GPUMETER_EXCLUDES(mutex_);
  /// A condition's profile of the run begins.
  void spend(const RunName& run) GPUMETER_EXCLUDES(mutex_);

  /// Lines for load() (base/records.hpp).
  std::string save() GPUMETER_EXCLUDES(mutex_);
  /// Replaces the contents by those that an earlier process saved. Within one boot CLOCK_BOOTTIME continues.
  /// After a reboot, the time since then is that of CLOCK_REALTIME; if that clock was set back, a profile
  /// counts as taken now. Returns an Error for other lines, and then changes nothing.
  Result<Done> load(std::string_view section, bool is_of_this_boot) GPUMETER_EXCLUDES(mutex_);

 private:
  struct Spent {
    RunName run;
    Nanoseconds boot{};  ///< CLOCK_BOOTTIME of this boot; negative before it
    Nanoseconds unix{};  ///< CLOCK_REALTIME
  };

  Nanoseconds forget_old() GPUMETER_REQUIRES(mutex_);

  const Budget budget_;
  const Clock& clock_;
  mutable Mutex mutex_;
  std::deque<Spent> spent_ GPUMETER_GUARDED_BY(mutex_);  ///< the oldest first
};

}  // namespace gpumeter::profiles
