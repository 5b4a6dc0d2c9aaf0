#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "collectors/attribution/workload_settings.hpp"
#include "exporter/store/series_list.hpp"
#include "exporter/store/store.hpp"

namespace gpumeter {

/// Keeps gpu_workload_info in the store: one series for each workload that uses a device
/// or was given one. Names that the kubelet, Slurm or an administrator gave stay as last seen: Slurm's leave
/// with the epilog, the workload's series minutes later. One thread at a time.
class WorkloadInfo {
 public:
  WorkloadInfo(WorkloadSettings settings, Store& store)
      : settings_(std::move(settings)), series_(store.attach()) {}

  /// Commits the workloads if they have changed, at most once a second. Commits them once a minute in any
  /// case, because the lookup of a user's name may take long. Otherwise only compares a number.
  void tick(Nanoseconds now);

 private:
  std::vector<Label> names_of(const workloads::WorkloadBook::Workload& workload);
  void add_allocated(const std::set<workloads::WorkloadId>& present);

  const WorkloadSettings settings_;
  SeriesList series_;
  std::map<workloads::WorkloadId, std::vector<Label>> names_;  ///< as last seen, of the workloads in the book
  Nanoseconds published_at_{};
  std::optional<std::uint64_t> published_;  // the book's generation
};

}  // namespace gpumeter
