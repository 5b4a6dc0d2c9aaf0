#pragma once

#include <cstdint>
#include <memory>

#include "base/descriptor.hpp"
#include "base/log.hpp"
#include "base/mutex.hpp"
#include "base/paths.hpp"
#include "base/worker.hpp"
#include "collectors/attribution/kubelet/sources.hpp"
#include "collectors/attribution/workload_settings.hpp"
#include "daemon/service.hpp"
#include "exporter/store/series_list.hpp"
#include "exporter/store/store.hpp"

namespace gpumeter {

/// Asks the node's kubelet for the names of pods on the thread "kubelet", and publishes the state of the
/// sources. Nobody waits for the thread. start(), request_stop() and join(): the owner's thread.
class KubeletNames final : public Service {
 public:
  /// `clock`, `log` and `store` must outlive this object and its thread.
  KubeletNames(const kubelet::Settings& settings, const Paths& paths, WorkloadSettings workloads,
               const Clock& clock, Log& log, Store& store);

  Result<Done> start() override;
  void request_stop() override;
  bool join(Nanoseconds deadline) override { return worker_.join(deadline); }

  /// Commits gpumeter_names_source_*. Wakes the thread if a pod without a name is on a GPU. One thread.
  void tick() GPUMETER_EXCLUDES(mutex_);

 private:
  Nanoseconds turn() GPUMETER_EXCLUDES(mutex_);
  void wake();
  void log_changes(const kubelet::Figures& before, const kubelet::Figures& now);
  bool has_nameless_pod() const;

  const bool is_required_;  // `enabled: true`: a missing source is on the page too
  const WorkloadSettings workloads_;
  const Clock& clock_;
  Log& log_;
  const Descriptor waker_;       // an eventfd
  const Descriptor stopper_;     // an eventfd
  kubelet::Sources sources_;     // of the thread
  SeriesList series_;            // of tick()'s thread
  std::uint64_t looked_at_ = 0;  // of tick()'s thread: the generation of the workloads
  mutable Mutex mutex_;
  kubelet::Figures figures_ GPUMETER_GUARDED_BY(mutex_);
  bool asks_soon_ GPUMETER_GUARDED_BY(mutex_) = false;
  Worker worker_;
};

/// The families gpumeter_names_source_*.
void add_source_series(kubelet::SourceId source, const kubelet::SourceFigures& figures, SeriesList& series);

/// Returns null if the configuration disables workloads or the names of Kubernetes.
std::unique_ptr<KubeletNames> make_kubelet_names(const kubelet::Settings& settings, const Paths& paths,
                                                 const WorkloadSettings& workloads, const Clock& clock,
                                                 Log& log, Store& store);

}  // namespace gpumeter
