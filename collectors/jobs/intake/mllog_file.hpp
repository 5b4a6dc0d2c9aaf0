#pragma once

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
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
  std::optional<Batch> read() {
    if (!descriptor_ || is_replaced()) open();
    if (!descriptor_) return std::nullopt;
    struct stat now {};
    if (S_ISREG(status_.st_mode) && fstat(descriptor_.number(), &now) == 0 &&
        static_cast<std::size_t>(now.st_size) < offset_) {
      lseek(descriptor_.number(), 0, SEEK_SET);
      offset_ = 0;
      lines_.emplace(StreamSplitter::Framing::lines);
    }
    Batch batch{*sender(), {}};
    const std::uint64_t overlong = lines_->overlong();
    for (std::size_t taken = 0; taken < kMostAtOnce;) {
      const std::span<char> room = lines_->room();
      const ssize_t got = ::read(descriptor_.number(), room.data(), room.size());
      if (got <= 0) break;
      taken += static_cast<std::size_t>(got);
      offset_ += static_cast<std::size_t>(got);
      lines_->received(static_cast<std::size_t>(got));
      while (const auto line = lines_->next()) batch.lines.append(*line).append(1, '\n');
    }
    batch.overlong = lines_->overlong() - overlong;
    return batch.lines.empty() && batch.overlong == 0 ? std::nullopt : std::optional(std::move(batch));
  }

  /// The file's owner, with -number as its pid and the inode as its start time; nullopt if the file is not
  /// open.
  std::optional<SenderId> sender() const noexcept {
    if (!descriptor_) return std::nullopt;
    return SenderId{status_.st_uid, -number_, status_.st_ino};
  }
  /// Why the file is not read, unless it merely does not exist. Empty: no trouble.
  std::string_view trouble() const noexcept { return trouble_; }

 private:
  /// Opens the end of the path with O_PATH, without following links.
  Descriptor find() {
    Descriptor place(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
    trouble_ = {};
    std::string_view rest = path_;
    while (place && !rest.empty()) {
      rest.remove_prefix(std::min(rest.find_first_not_of('/'), rest.size()));
      const std::size_t end = std::min(rest.find('/'), rest.size());
      const std::string name(rest.substr(0, end));
      rest.remove_prefix(end);
      if (name.empty()) break;
      place = Descriptor(openat(place.number(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
      if (!place && errno == EACCES) trouble_ = "the daemon has no permission to search a folder on its path";
      struct stat status {};
      if (place && fstat(place.number(), &status) == 0 && S_ISLNK(status.st_mode)) {
        trouble_ = "its path contains a link; name the file itself";
        return {};
      }
    }
    return place;
  }
  void open() {
    descriptor_ = {};
    offset_ = 0;
    const Descriptor found = find();
    if (!found || fstat(found.number(), &status_) != 0) return;
    if (!S_ISREG(status_.st_mode) && !S_ISFIFO(status_.st_mode)) {
      trouble_ = "it is neither a file nor a pipe";
      return;
    }
    // Opens the file that was checked; its path may lead to another file by now.
    const std::string same = "/proc/self/fd/" + std::to_string(found.number());
    descriptor_ = Descriptor(::open(same.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (!descriptor_) trouble_ = "it cannot be read";
    if (descriptor_) lines_.emplace(StreamSplitter::Framing::lines);
  }
  /// The path names another file or none, and the open file has been read to its end.
  bool is_replaced() {
    struct stat held {};
    struct stat named {};
    const Descriptor found = find();
    if (found && fstat(found.number(), &named) == 0 && named.st_dev == status_.st_dev &&
        named.st_ino == status_.st_ino) {
      return false;
    }
    return !S_ISREG(status_.st_mode) || fstat(descriptor_.number(), &held) != 0 ||
           static_cast<std::size_t>(held.st_size) <= offset_;
  }

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
  MllogReader(LogSettings log, std::int32_t number)
      : log_(std::move(log)), number_(number), shared_(new Shared{MllogFile(log_.path, number), {}}) {}

  /// Starts the thread if it is not running. An Error: the kernel provides no thread now.
  Result<Done> start() {
    if (is_started_) return Done{};
    Result<Done> started = worker_.start("mllog-" + std::to_string(number_), [shared = shared_] {
      if (shared->has_batch()) return kNotTaken;
      shared->read();
      return kEvery;
    });
    is_started_ = static_cast<bool>(started);
    return started;
  }
  void request_stop() { worker_.request_stop(); }
  /// See Worker::join().
  bool join(Nanoseconds deadline) { return worker_.join(deadline); }

  /// The lines since the last call; nullopt if there are none.
  std::optional<MllogFile::Batch> take() {
    const MutexLock lock(shared_->mutex);
    return std::exchange(shared_->batch, std::nullopt);
  }
  /// The owner of the file at the last read; nullopt while the file is not open.
  std::optional<SenderId> sender() const {
    const MutexLock lock(shared_->mutex);
    return shared_->sender;
  }
  /// Why the log is not read. Empty: no trouble.
  std::string trouble() const {
    if (worker_.is_busy_for(kDeadline)) return "a read of the file does not return";
    const MutexLock lock(shared_->mutex);
    return shared_->trouble;
  }
  const LogSettings& log() const noexcept { return log_; }

 private:
  static constexpr Nanoseconds kEvery = std::chrono::seconds(1);
  static constexpr Nanoseconds kNotTaken = std::chrono::milliseconds(100);
  static constexpr Nanoseconds kDeadline = std::chrono::seconds(10);

  struct Shared {
    MllogFile file;  ///< used by the thread only
    mutable Mutex mutex;
    std::optional<MllogFile::Batch> batch GPUMETER_GUARDED_BY(mutex) = {};
    std::optional<SenderId> sender GPUMETER_GUARDED_BY(mutex) = {};
    std::string trouble GPUMETER_GUARDED_BY(mutex) = {};

    bool has_batch() const {
      const MutexLock lock(mutex);
      return batch.has_value();
    }

    void read() {
      std::optional<MllogFile::Batch> next = file.read();
      const MutexLock lock(mutex);
      batch = std::move(next);
      sender = file.sender();
      trouble = file.trouble();
    }
  };

  const LogSettings log_;
  const std::int32_t number_;
  const SystemClock clock_;
  bool is_started_ = false;
  const std::shared_ptr<Shared> shared_;  ///< shared with the thread, which may outlive this object
  Worker worker_{clock_};
};

}  // namespace gpumeter::jobs
