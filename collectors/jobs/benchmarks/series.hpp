#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "collectors/jobs/benchmarks/results.hpp"
#include "exporter/store/series_list.hpp"

namespace gpumeter::jobs::benchmarks {

/// The results of benchmarks in the store, with the labels of their GPUs. A GPU that is not known, as while
/// its collector is disabled, has no series. One thread.
class Series {
 public:
  Series(Source source, DeviceLabels labels) : list_(std::move(source)), labels_(labels) {}

  /// Commits the series if the results or the known `devices` differ from those of the last call.
  void show(const Results& results, std::vector<DeviceIdentity> devices, Nanoseconds now);

 private:
  SeriesList list_;
  const DeviceLabels labels_;
  std::uint64_t version_ = 0;
  std::vector<DeviceIdentity> devices_;
};

}  // namespace gpumeter::jobs::benchmarks
