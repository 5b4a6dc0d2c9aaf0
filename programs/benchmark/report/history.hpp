#pragma once

#include <string>

#include "base/result.hpp"
#include "programs/benchmark/report/report.hpp"

namespace gpumeter::benchmark {

/// The results of one GPU over time: the file UUID.json in the state folder. One thread.
///
/// A baseline is the median of the first three runs that were ok and had the same key: the versions of driver
/// and libraries, and the power limit. Such runs are comparable, and the first ones are those of the card
/// when it was installed. The file has the last 200 runs, and the baselines of all keys.
class History {
 public:
  explicit History(std::string folder) : folder_(std::move(folder)) {}

  /// Fills report.baseline_ratios from the file, adds the run if it was ok or failed, and writes the file
  /// completely or not at all. A file that cannot be parsed is kept as UUID.json.bad.
  Result<Done> record(Report& report) const;
  /// Unix time of the last run; 0: none.
  double last_run(const std::string& uuid) const;

 private:
  std::string folder_;
};

}  // namespace gpumeter::benchmark
