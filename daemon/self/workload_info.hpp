#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "collectors/attribution/workload_settings.hpp"
#include "exporter/store/series_list.hpp"
#include "exporter/store/store.hpp"

namespace gpumeter {

/// Keeps gpu_workload_info in the store: one series for each workload that uses a device
/// or was given one. One thread at a time.
class WorkloadInfo {
 public:
  WorkloadInfo(WorkloadSettings settings, Store& store)
      : settings_(std::move(settings)), series_(store.attach()) {}

  /// Commits the workloads if they have changed, at most once a second. Commits them once a minute in any
  /// case, because the lookup of a user's name may take long. Otherwise only compares a number.
  void tick(Nanoseconds now);

 private:
  void add_allocated(const std::set<workloads::WorkloadId>& present);

  const WorkloadSettings settings_;
  SeriesList series_;
  Nanoseconds published_at_{};
  std::optional<std::uint64_t> published_;  // the book's generation
};

}  // namespace gpumeter
