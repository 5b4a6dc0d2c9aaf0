#pragma once

#include <memory>

#include "base/log.hpp"
#include "base/worker.hpp"
#include "collectors/attribution/workload_settings.hpp"
#include "collectors/jobs/join/run_book.hpp"
#include "collectors/nccl/settings.hpp"
#include "daemon/service.hpp"
#include "exporter/store/store.hpp"

namespace gpumeter {

/// Reads the files of NCCL Inspector and of PyTorch's flight recorder on the thread "nccl-files", because
/// their file systems may hang. Nobody waits for the thread. The owner's thread.
class NcclFiles final : public Service {
 public:
  struct Parts {
    const Clock& clock;
    Log& log;
    Store& store;
    WorkloadSettings workloads;
    std::shared_ptr<jobs::RunBook> runs;
  };

  /// `clock`, `log` and `store` must outlive the thread.
  NcclFiles(const Parts& parts, const nccl::Settings& settings, Nanoseconds interval);

  Result<Done> start() override;
  void request_stop() override { worker_.request_stop(); }
  bool join(Nanoseconds deadline) override { return worker_.join(deadline); }

 private:
  class Turn;

  const std::shared_ptr<Turn> turn_;  ///< shared with the thread, which may outlive this object
  Worker worker_;
};

/// Returns null if the configuration names no files, or disables the attribution of GPUs, by which a file's
/// owner is known to use a GPU.
std::unique_ptr<NcclFiles> make_nccl_files(const nccl::Settings& settings, Nanoseconds interval,
                                           const NcclFiles::Parts& parts);

}  // namespace gpumeter
