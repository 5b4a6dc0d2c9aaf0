#include "collectors/jobs/intake/mllog_reader.hpp"

#include <utility>

namespace gpumeter::jobs {
namespace {

constexpr Nanoseconds kEvery = std::chrono::seconds(1);
constexpr Nanoseconds kNotTaken = std::chrono::milliseconds(100);
constexpr Nanoseconds kDeadline = std::chrono::seconds(10);

}  // namespace

struct MllogReader::Shared {
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

MllogReader::MllogReader(LogSettings log, std::int32_t number)
    : log_(std::move(log)), number_(number), shared_(new Shared{MllogFile(log_.path, number), {}}) {}

Result<Done> MllogReader::start() {
  if (is_started_) return Done{};
  Result<Done> started = worker_.start("mllog-" + std::to_string(number_), [shared = shared_] {
    if (shared->has_batch()) return kNotTaken;
    shared->read();
    return kEvery;
  });
  is_started_ = static_cast<bool>(started);
  return started;
}

std::optional<MllogFile::Batch> MllogReader::take() {
  const MutexLock lock(shared_->mutex);
  return std::exchange(shared_->batch, std::nullopt);
}

std::optional<SenderId> MllogReader::sender() const {
  const MutexLock lock(shared_->mutex);
  return shared_->sender;
}

std::string MllogReader::trouble() const {
  if (worker_.is_busy_for(kDeadline)) return "a read of the file does not return";
  const MutexLock lock(shared_->mutex);
  return shared_->trouble;
}

}  // namespace gpumeter::jobs
