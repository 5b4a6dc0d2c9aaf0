#include "daemon/fleet/state_keeper.hpp"

#include <algorithm>
#include <atomic>
#include <optional>
#include <thread>
#include <utility>

#include "daemon/fleet/device_directory.hpp"
#include "daemon/state/figures_file.hpp"

namespace gpumeter {
namespace {

// Limits writes to one a second, also if hundreds of devices come and go.
constexpr auto kBetweenWrites = std::chrono::seconds(1);
// Retries a failed write, for example after a full disk. Otherwise the indexes would stay unsaved until the
// next change.
constexpr auto kAfterFailure = std::chrono::seconds(5);
constexpr auto kEnd = std::chrono::seconds(1);
// The keeper reports writes that take longer.
constexpr auto kLate = std::chrono::seconds(10);
// `gpumeter forget` holds the folder's lock for as long as it edits a file, which takes milliseconds.
constexpr auto kLockPause = std::chrono::milliseconds(50);
constexpr int kLockAttempts = 10;

}  // namespace

/// The state folder. turn() and write(): the thread "state". Everything else: any thread.
class StateKeeper::Folder {
 public:
  Folder(FiguresFolders folders, const Clock& clock, Log& log, KeptFigures figures)
      : path_(folders.state),
        clock_(clock),
        log_(log),
        figures_(std::move(folders), clock, log, std::move(figures)) {}

  Nanoseconds turn();
  void write();
  void end();

  const std::string& path() const { return path_; }
  DeviceDirectory wait_for_load(Nanoseconds deadline) GPUMETER_EXCLUDES(mutex_);
  bool may_write() const { return may_write_; }
  void save(const DeviceDirectory& directory) {
    wanted_.post(directory, [](const DeviceDirectory&) { return true; });
  }
  void report_late(bool is_late);
  void note_page() { was_served_ = true; }

 private:
  void load() GPUMETER_EXCLUDES(mutex_);
  Result<Done> publish(DeviceDirectory directory, const Result<Done>& loaded, bool may_write, bool is_shared)
      GPUMETER_EXCLUDES(mutex_);
  void report(const DeviceDirectory& directory, const Result<Done>& loaded);
  void lock();
  bool belongs_to_another();

  const std::string path_;
  const Clock& clock_;
  Log& log_;

  // Used only by the thread.
  bool is_loaded_ = false;
  std::optional<DeviceDirectory> unwritten_;
  std::optional<Nanoseconds> next_write_;  // CLOCK_MONOTONIC
  bool write_failed_ = false;
  std::optional<FolderLock> lock_;
  FiguresFile figures_;

  Mailbox<DeviceDirectory> wanted_;
  std::atomic<bool> was_served_ = false;
  std::atomic<bool> may_write_ = false;
  std::atomic<bool> late_reported_ = false;
  Mutex mutex_;
  Condition changed_;
  std::optional<DeviceDirectory> loaded_ GPUMETER_GUARDED_BY(mutex_);
  bool given_up_ GPUMETER_GUARDED_BY(mutex_) = false;  // the wait for the load has ended
};

// Returns the pause until the next turn.
Nanoseconds StateKeeper::Folder::turn() {
  if (!std::exchange(is_loaded_, true)) load();
  const Nanoseconds now = clock_.monotonic();
  if (!next_write_ || now >= *next_write_) write();
  Nanoseconds pause = next_write_ ? *next_write_ - now : Worker::kForever;
  if (may_write_) pause = std::min(pause, figures_.save_if_due(was_served_.exchange(false)));
  return pause;
}

// The load may end after the wait for it; the file is then not overwritten either.
void StateKeeper::Folder::load() {
  const bool is_shared = belongs_to_another();
  DeviceDirectory directory(path_);
  const Result<Done> done = directory.load();
  const bool may_write = directory.is_readable() && !is_shared;
  if (may_write) figures_.read();
  figures_.report(publish(std::move(directory), done, may_write, is_shared));
}

// Returns the outcome for the figures.
Result<Done> StateKeeper::Folder::publish(DeviceDirectory directory, const Result<Done>& loaded,
                                          bool may_write, bool is_shared) {
  const MutexLock lock(mutex_);
  if (given_up_) return Done{};
  const Result<Done> restored = may_write ? figures_.restore() : Result<Done>(Done{});
  report(directory, loaded);
  if (is_shared) {
    log_.error(
        "another gpumeter uses the state folder; this one reads it and saves nothing until it is restarted",
        {{"path", path_}});
  }
  loaded_ = std::move(directory);
  may_write_ = may_write;
  changed_.notify_all();
  return restored;
}

void StateKeeper::Folder::report(const DeviceDirectory& directory, const Result<Done>& loaded) {
  if (loaded) return;
  if (!directory.is_readable()) {
    return log_.error("the state folder cannot be read; indexes start from 0 and are not kept over a restart",
                      {{"error", loaded.error().message()}});
  }
  log_.warn(directory.is_foreign()
                ? "the state folder belongs to another machine; the devices that it names are forgotten"
                : "the devices' indexes are lost",
            {{"error", loaded.error().message()}});
}

bool StateKeeper::Folder::belongs_to_another() {
  for (int attempt = 0; attempt < kLockAttempts; ++attempt) {
    if (attempt > 0) std::this_thread::sleep_for(kLockPause);
    lock();
    if (!lock_ || !lock_->is_taken()) return false;
  }
  return true;
}

// The lock shows `gpumeter forget` and other daemons that a daemon uses the folder.
// If the folder cannot be created, the write reports that.
void StateKeeper::Folder::lock() {
  if (lock_ && lock_->is_ours()) return;
  [[maybe_unused]] const Result<gpumeter::Folder> ignored = gpumeter::Folder::make(path_, kStateFolderMode);
  Result<FolderLock> taken = FolderLock::take(path_);
  if (taken) lock_.emplace(*std::move(taken));
}

void StateKeeper::Folder::end() {
  write();
  if (may_write_) figures_.save_last();
  lock_.reset();
}

DeviceDirectory StateKeeper::Folder::wait_for_load(Nanoseconds deadline) {
  const MutexLock lock(mutex_);
  while (!loaded_ && clock_.monotonic() < deadline) changed_.wait_for(mutex_, deadline - clock_.monotonic());
  if (loaded_) return *std::exchange(loaded_, std::nullopt);
  given_up_ = true;
  log_.error("the state folder does not answer; indexes start from 0 and are not kept over a restart",
             {{"path", path_}});
  return DeviceDirectory(path_);
}

// If a write fails, the directory is kept for the retry, unless a newer one replaces it.
void StateKeeper::Folder::write() {
  for (DeviceDirectory& wanted : wanted_.take()) unwritten_ = std::move(wanted);
  next_write_.reset();
  if (!unwritten_) return;
  lock();
  const Result<Done> saved = unwritten_->save();
  if (!saved && !std::exchange(write_failed_, true)) {
    log_.warn("indexes cannot be saved; the daemon retries every 5 s", {{"error", saved.error().message()}});
  }
  if (saved) {
    if (std::exchange(write_failed_, false)) log_.info("indexes are saved again", {{"path", path_}});
    unwritten_.reset();
  }
  next_write_ = clock_.monotonic() + (write_failed_ ? kAfterFailure : kBetweenWrites);
}

void StateKeeper::Folder::report_late(bool is_late) {
  if (late_reported_.exchange(is_late) || !is_late) return;
  log_.error("the state folder does not answer; changes are not saved until it does", {{"path", path_}});
}

StateKeeper::StateKeeper(FiguresFolders folders, const Clock& clock, Log& log, KeptFigures figures)
    : clock_(clock),
      log_(log),
      folder_(std::make_shared<Folder>(std::move(folders), clock, log, std::move(figures))),
      worker_(clock) {}

StateKeeper::~StateKeeper() { stop(clock_.monotonic() + kEnd); }

DeviceDirectory StateKeeper::load(Nanoseconds deadline) {
  const Result<Done> started = worker_.start(
      "state", [folder = folder_] { return folder->turn(); }, [folder = folder_] { folder->end(); });
  if (started) return folder_->wait_for_load(deadline);
  log_.error("indexes cannot be saved and are not kept over a restart",
             {{"error", started.error().message()}});
  return DeviceDirectory(folder_->path());
}

void StateKeeper::save(const DeviceDirectory& directory) {
  if (!folder_->may_write()) return;
  folder_->save(directory);
  worker_.wake();
  folder_->report_late(worker_.is_busy_for(kLate));
}

void StateKeeper::copy_soon() {
  folder_->note_page();
  worker_.wake();
}

bool StateKeeper::stop(Nanoseconds deadline) {
  const bool ended = worker_.stop(deadline);
  if (!ended) {
    log_.error("the state folder does not answer; the last changes are not saved",
               {{"path", folder_->path()}});
  }
  return ended;
}

}  // namespace gpumeter
