#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/mutex.hpp"
#include "base/worker.hpp"
#include "collectors/jobs/intake/mllog_file.hpp"
#include "collectors/jobs/intake/settings.hpp"

namespace gpumeter::jobs {

/// Follows one MLPerf log on its own thread, "mllog-N". If a read of the file hangs (a network that is gone),
/// only this log stops. Lines wait here until take(). The thread reads nothing more meanwhile, so at most one
/// MllogFile::kMostAtOnce waits. Public methods: one thread.
class MllogReader {
 public:
  /// `number`: see MllogFile.
  MllogReader(LogSettings log, std::int32_t number);

  /// Starts the thread if it is not running. An Error: the kernel provides no thread now.
  Result<Done> start();
  void request_stop() { worker_.request_stop(); }
  /// See Worker::join().
  bool join(Nanoseconds deadline) { return worker_.join(deadline); }

  /// The lines since the last call; nullopt if there are none.
  std::optional<MllogFile::Batch> take();
  /// The owner of the file at the last read; nullopt while the file is not open.
  std::optional<SenderId> sender() const;
  /// Why the log is not read. Empty: no trouble.
  std::string trouble() const;
  const LogSettings& log() const noexcept { return log_; }

 private:
  struct Shared;

  const LogSettings log_;
  const std::int32_t number_;
  const SystemClock clock_;
  bool is_started_ = false;
  const std::shared_ptr<Shared> shared_;  ///< shared with the thread, which may outlive this object
  Worker worker_{clock_};
};

}  // namespace gpumeter::jobs
