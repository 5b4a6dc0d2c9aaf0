#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/api/series.hpp"
#include "collectors/jobs/wire/refusal.hpp"
#include "collectors/jobs/wire/sender.hpp"
#include "exporter/store/family.hpp"

namespace gpumeter::jobs {

/// One line of the page.
struct JobSeries {
  SeriesSpec series;
  Part part;
  double value;
};

/// A run as the page has it.
struct RunName {
  std::string user;
  std::string run;

  auto operator<=>(const RunName&) const = default;
};

/// A live process of a run that has not sent run_stop: what GPUs are joined to. A process may go on to its
/// next run, as in a notebook.
struct RunProcess {
  SenderId id;
  RunName run;
};

/// What the model knew at one moment. Immutable once made: any thread.
struct JobSnapshot {
  std::vector<JobSeries> series;  ///< each run's together; no two are the same
  std::vector<RunName> runs;      ///< `_other` aside
  std::vector<RunName> ended;     ///< those of them that have ml_run_stop_timestamp_seconds
  std::vector<RunProcess> processes;
  std::array<std::uint64_t, kRefusalCount> dropped{};  ///< by Refusal, since the daemon started
};

}  // namespace gpumeter::jobs
