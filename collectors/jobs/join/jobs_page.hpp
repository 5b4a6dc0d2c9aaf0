#pragma once

#include <functional>
#include <memory>
#include <thread>

#include "base/mutex.hpp"
#include "base/result.hpp"
#include "collectors/jobs/model/job_series.hpp"
#include "exporter/store/series_list.hpp"
#include "exporter/store/store.hpp"

namespace gpumeter::jobs {

/// Adds the series of a snapshot: ml_* and gpumeter_jobs_dropped_total with every reason.
void add_job_series(const JobSnapshot& snapshot, SeriesList& to);

/// Puts what jobs said on the page, each second, on a thread of its own: "jobs-page". start() and stop() are
/// the owner's.
class JobsPage {
 public:
  using Latest = std::function<std::shared_ptr<const JobSnapshot>()>;
  /// More series of the same snapshot: what joins runs with GPUs. May block for as long as it likes.
  using Append = std::function<void(const JobSnapshot&, SeriesList&)>;

  JobsPage(Store& store, const Clock& clock, Latest latest, Append append = {})
      : series_(store.attach()), clock_(clock), latest_(std::move(latest)), append_(std::move(append)) {}
  ~JobsPage() { stop(); }
  JobsPage(const JobsPage&) = delete;
  JobsPage& operator=(const JobsPage&) = delete;

  /// Starts the thread if it does not run yet. An Error: the kernel gives none now.
  Result<Done> start();
  void stop();
  /// Publishes now; only where the thread is not started.
  void publish();

 private:
  void run() noexcept;
  bool sleep();

  SeriesList series_;  // of the thread that publishes
  const Clock& clock_;
  const Latest latest_;
  const Append append_;
  std::thread thread_;

  Mutex mutex_;
  Condition changed_;
  bool stop_ GPUMETER_GUARDED_BY(mutex_) = false;
};

}  // namespace gpumeter::jobs
