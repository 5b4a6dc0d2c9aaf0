#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "collectors/attribution/workload_settings.hpp"
#include "exporter/store/registry.hpp"
#include "exporter/store/series_set.hpp"

namespace gpumeter {

/// gpu_workload_info, one for each workload of any device.
SeriesSet workload_info(const std::vector<workloads::WorkloadBook::Workload>& workloads,
                        const UserName& user_name);

/// Keeps it on the page. One thread at a time.
class WorkloadInfo {
 public:
  explicit WorkloadInfo(WorkloadSettings settings) : settings_(std::move(settings)) {}

  /// Publishes what changed, once a second at the most; once a minute in any case, since a user's name may
  /// be known late. Costs one look at a number where nothing did.
  void tick(Nanoseconds now, Registry& registry);

 private:
  const WorkloadSettings settings_;
  Nanoseconds published_at_{};
  std::optional<std::uint64_t> published_;  // the book's generation
};

}  // namespace gpumeter
