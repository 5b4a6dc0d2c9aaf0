#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/descriptor.hpp"
#include "base/mutex.hpp"
#include "base/worker.hpp"
#include "collectors/jobs/intake/settings.hpp"
#include "collectors/jobs/wire/line.hpp"
#include "collectors/jobs/wire/sender.hpp"

namespace gpumeter::jobs {

/// Follows a file or named pipe into which an MLPerf job logs, from its start. The file may be truncated,
/// replaced or created later. One thread.
///
/// The job controls the file, and could replace it with a link. The link could lead to a file that only the
/// daemon may read, or to a device that a read disturbs. The class therefore follows no link anywhere on the
/// path, and opens only files and pipes.
class MllogFile {
 public:
  /// The limit of one read(), in addition to one buffer, so that a large file delays no other log: 1 MiB is
  /// 7000 lines.
  static constexpr std::size_t kMostAtOnce = std::size_t{1} << 20;

  /// New lines, in order.
  struct Batch {
    SenderId sender;
    std::string lines;           ///< each ends with a newline
    std::uint64_t overlong = 0;  ///< omitted lines over kMaxPayload
  };

  /// `number` counts from 1 and distinguishes the senders of two files.
  MllogFile(std::string path, std::int32_t number) : path_(std::move(path)), number_(number) {}

  /// Returns nullopt if there are no new lines.
  std::optional<Batch> read();

  /// The file's owner, with -number as its pid and the inode as its start time; nullopt if the file is not
  /// open.
  std::optional<SenderId> sender() const noexcept;
  /// Why the file is not read, unless it merely does not exist. Empty: no trouble.
  std::string_view trouble() const noexcept { return trouble_; }

 private:
  Descriptor find();
  void open();
  bool is_replaced();

  std::string path_;
  std::int32_t number_;
  Descriptor descriptor_;
  struct stat status_ {};
  std::size_t offset_ = 0;
  std::optional<StreamSplitter> lines_;
  std::string_view trouble_;
};

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
