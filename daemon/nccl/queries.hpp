#pragma once

#include <functional>
#include <memory>

#include "base/log.hpp"
#include "base/worker.hpp"
#include "collectors/attribution/workload_settings.hpp"
#include "collectors/jobs/join/run_book.hpp"
#include "collectors/nccl/settings.hpp"
#include "daemon/service.hpp"
#include "exporter/store/store.hpp"

namespace gpumeter {

/// Asks the jobs' NCCL about their ranks on the thread "nccl", and publishes the ml_nccl_* families. Nobody
/// waits for the thread. The owner's thread.
class NcclQueries final : public Service {
 public:
  struct Parts {
    const Clock& clock;
    Log& log;
    Store& store;
    WorkloadSettings workloads;
    std::shared_ptr<jobs::RunBook> runs;
  };

  /// `clock`, `log` and `store` must outlive the thread.
  NcclQueries(const Parts& parts, const nccl::Settings& settings);

  Result<Done> start() override;
  void request_stop() override;
  bool join(Nanoseconds deadline) override { return worker_.join(deadline); }

 private:
  class Turn;

  const std::shared_ptr<Turn> turn_;  ///< shared with the thread, which may outlive this object
  Worker worker_;
};

/// Returns null if the configuration disables the queries or the attribution of GPUs.
std::unique_ptr<NcclQueries> make_nccl_queries(const nccl::Settings& settings,
                                               const NcclQueries::Parts& parts);

}  // namespace gpumeter
