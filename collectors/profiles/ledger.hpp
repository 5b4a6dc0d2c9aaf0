#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.hpp"
#include "base/enum_names.hpp"
#include "collectors/jobs/model/run_list.hpp"
#include "exporter/store/series_list.hpp"

namespace gpumeter::profiles {

using jobs::RunName;

/// The end of a request for a profile.
enum class Status : std::uint8_t {
  done,     ///< each process took its trace
  failed,   ///< a process ended or rejected the order
  timeout,  ///< a process did not take the order or did not end its trace in time
  refused   ///< cooldown, budget, or another trace under way
};
inline constexpr EnumNames<Status, 4> kStatusNames = {{{Status::done, "done"},
                                                       {Status::failed, "failed"},
                                                       {Status::timeout, "timeout"},
                                                       {Status::refused, "refused"}}};

/// Counts the profiles of each run. One thread. Times are CLOCK_BOOTTIME unless named otherwise.
class Ledger {
 public:
  /// Runs that are remembered. Another one takes the place of the run that is unused the longest.
  static constexpr std::size_t kMostRuns = 512;

  /// `unix`: CLOCK_REALTIME.
  void count(const RunName& run, const std::string& trigger, Status status, Nanoseconds now,
             Nanoseconds unix);
  /// Adds ml_profiles_total and ml_profile_last_timestamp_seconds.
  void write(SeriesList& out) const;
  /// Forgets runs without a profile in 24 hours.
  void tick(Nanoseconds now);

 private:
  struct Page {
    std::map<std::pair<std::string, Status>, std::uint64_t> counts;  ///< by trigger and status
    std::map<std::string, double> last;                              ///< Unix time, by trigger
    Nanoseconds used{};
  };

  Page& page(const RunName& run, Nanoseconds now);

  std::map<RunName, Page> pages_;
};

}  // namespace gpumeter::profiles
