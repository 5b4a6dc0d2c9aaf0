#include "collectors/jobs/intake/mllog_reader.hpp"

#include <exception>
#include <utility>

namespace gpumeter::jobs {
namespace {

constexpr auto kEvery = std::chrono::seconds(1);
constexpr auto kDeadline = std::chrono::seconds(10);

}  // namespace

struct MllogReader::Shared {
  const SystemClock clock;
  mutable Mutex mutex;
  Condition changed;
  bool stop GPUMETER_GUARDED_BY(mutex) = false;
  std::optional<Batch> batch GPUMETER_GUARDED_BY(mutex);
  std::optional<SenderId> sender GPUMETER_GUARDED_BY(mutex);
  std::string trouble GPUMETER_GUARDED_BY(mutex);
  std::optional<Nanoseconds> busy_since GPUMETER_GUARDED_BY(mutex);

  /// Until the next read is due and what was read is taken. False: stop.
  bool wait() {
    const Nanoseconds until = clock.monotonic() + kEvery;
    MutexLock lock(mutex);
    while (!stop && (batch || clock.monotonic() < until)) changed.wait_for(mutex, kEvery);
    return !stop;
  }
  void begin() {
    MutexLock lock(mutex);
    busy_since = clock.monotonic();
  }
  void end(const MllogFile& file, std::string lines, std::uint64_t overlong) {
    MutexLock lock(mutex);
    busy_since.reset();
    sender = file.sender();
    trouble = file.trouble();
    if (sender && (!lines.empty() || overlong > 0)) batch = {*sender, std::move(lines), overlong};
  }
};

MllogReader::MllogReader(const std::string& run, const std::string& path, std::int32_t number)
    : run_(run), path_(path), number_(number), shared_(std::make_shared<Shared>()) {}

MllogReader::~MllogReader() { request_stop(); }

Result<Done> MllogReader::start() {
  if (is_started_) return Done{};
  Result<Done> started = thread_.start("mllog-" + std::to_string(number_),
                                       [shared = shared_, run = run_, path = path_, number = number_] {
                                         follow(*shared, MllogFile(run, path, number));
                                         return std::nullopt;
                                       });
  is_started_ = static_cast<bool>(started);
  return started;
}

void MllogReader::request_stop() {
  MutexLock lock(shared_->mutex);
  shared_->stop = true;
  shared_->changed.notify_all();
}

bool MllogReader::join(Nanoseconds deadline) { return thread_.join(deadline); }

std::optional<MllogReader::Batch> MllogReader::take() {
  MutexLock lock(shared_->mutex);
  std::optional<Batch> batch = std::exchange(shared_->batch, std::nullopt);
  if (batch) shared_->changed.notify_all();
  return batch;
}

std::optional<SenderId> MllogReader::sender() const {
  MutexLock lock(shared_->mutex);
  return shared_->sender;
}

std::string MllogReader::trouble() const {
  MutexLock lock(shared_->mutex);
  const auto since = shared_->busy_since;
  return since && clock_.monotonic() > *since + kDeadline ? "it does not answer" : shared_->trouble;
}

void MllogReader::follow(Shared& shared, MllogFile file) noexcept {
  do {
    try {
      shared.begin();
      std::string lines;
      const std::uint64_t overlong =
          file.read([&](std::string_view line) { lines.append(line).append(1, '\n'); });
      shared.end(file, std::move(lines), overlong);
    } catch (const std::exception&) {  // out of memory: what was being read is lost
    }
  } while (shared.wait());
}

}  // namespace gpumeter::jobs
