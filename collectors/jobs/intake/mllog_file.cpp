#include "collectors/jobs/intake/mllog_file.hpp"

#include <errno.h>
#include <fcntl.h>

#include <algorithm>
#include <utility>

namespace gpumeter::jobs {

std::optional<SenderId> MllogFile::sender() const noexcept {
  if (!descriptor_) return std::nullopt;
  return SenderId{status_.st_uid, -number_, status_.st_ino};
}

std::optional<MllogFile::Batch> MllogFile::read() {
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

/// The path names another file or none, and the open file has been read to its end.
bool MllogFile::is_replaced() {
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

/// Opens the end of the path with O_PATH, without following links.
Descriptor MllogFile::find() {
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

void MllogFile::open() {
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
