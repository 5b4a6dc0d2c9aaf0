#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/worker.hpp"
#include "base/mutex.hpp"
#include "collectors/jobs/intake/mllog_file.hpp"

namespace gpumeter::jobs {

/// Follows one log of MLPerf on a thread of its own, "mllog-N", since its file may lie where a read hangs (a
/// network that is gone), and then costs nobody else anything. What was read waits here until it is taken;
/// nothing more is read meanwhile, so one MllogFile::kMostAtOnce is the most that waits. Public methods: one
/// thread.
class MllogReader {
 public:
  /// What the file had, in order.
  struct Batch {
    SenderId sender;
    std::string lines;  ///< each with a newline at its end
    std::uint64_t overlong = 0;
  };

  /// `number`: see MllogFile.
  MllogReader(const std::string& run, const std::string& path, std::int32_t number);
  /// Leaves a thread that hangs behind.
  ~MllogReader();
  MllogReader(const MllogReader&) = delete;
  MllogReader& operator=(const MllogReader&) = delete;

  /// Starts the thread if it does not run yet. An Error: the kernel gives none now.
  Result<Done> start();
  void request_stop();
  /// As Lane::join().
  bool join(Nanoseconds deadline);

  /// What was read since the last call; nullopt: nothing. For each line of it, `lines` has it whole.
  std::optional<Batch> take();

  /// The owner of the file, as of the last read; nullopt while it is not open.
  std::optional<SenderId> sender() const;
  /// Why it is not read, or that it does not answer. Empty: no trouble.
  std::string trouble() const;
  const std::string& run() const noexcept { return run_; }
  const std::string& path() const noexcept { return path_; }
  std::int32_t number() const noexcept { return number_; }

 private:
  struct Shared;
  static void follow(Shared& shared, MllogFile file) noexcept;

  const std::string run_;
  const std::string path_;
  const std::int32_t number_;
  const SystemClock clock_;
  Worker thread_{clock_};
  bool is_started_ = false;
  const std::shared_ptr<Shared> shared_;  ///< the thread's too, which may outlive this object
};

}  // namespace gpumeter::jobs
