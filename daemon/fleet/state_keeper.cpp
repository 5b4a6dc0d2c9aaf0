#include "daemon/fleet/state_keeper.hpp"

#include <optional>
#include <utility>

namespace gpumeter {
namespace {

// Devices that come and go by the hundred are one write a second.
constexpr auto kBetweenWrites = std::chrono::seconds(1);
// A disk that was full or away for a moment is not left without the indexes until something changes.
constexpr auto kAfterFailure = std::chrono::seconds(5);
constexpr auto kIdle = std::chrono::minutes(10);
constexpr auto kEnd = std::chrono::seconds(1);
// A write that takes longer is reported.
constexpr auto kLate = std::chrono::seconds(10);

}  // namespace

struct StateKeeper::State {
  State(std::string path, const Clock& its_clock, Log& its_log)
      : folder(std::move(path)), clock(its_clock), log(its_log) {}

  void load() GPUMETER_EXCLUDES(mutex);
  std::optional<DeviceDirectory> next() GPUMETER_EXCLUDES(mutex);
  bool write(const DeviceDirectory& directory) GPUMETER_EXCLUDES(mutex);
  void keep(DeviceDirectory directory) GPUMETER_EXCLUDES(mutex);

  const std::string folder;
  const Clock& clock;
  Log& log;
  Nanoseconds written_at{};   // of the thread
  bool write_failed = false;  // of the thread

  Mutex mutex;
  Condition changed;
  std::optional<DeviceDirectory> loaded GPUMETER_GUARDED_BY(mutex);
  std::optional<DeviceDirectory> wanted GPUMETER_GUARDED_BY(mutex);
  std::optional<Nanoseconds> writing_since GPUMETER_GUARDED_BY(mutex);  // monotonic
  bool late_reported GPUMETER_GUARDED_BY(mutex) = false;
  bool may_write GPUMETER_GUARDED_BY(mutex) = false;
  bool given_up GPUMETER_GUARDED_BY(mutex) = false;  // nobody waits for the load any more
  bool stop GPUMETER_GUARDED_BY(mutex) = false;
};

// The load may end after everybody stopped waiting for it; the file is then not overwritten either.
void StateKeeper::State::load() {
  DeviceDirectory directory(folder);
  const Result<Done> done = directory.load();
  const bool readable = directory.is_readable();
  const MutexLock lock(mutex);
  if (given_up) return;
  if (!done && !readable) {
    log.error("the state folder cannot be read: indexes start anew and are not kept over a restart",
              {{"error", done.error().message()}});
  } else if (!done) {
    log.warn("the devices' indexes are lost", {{"error", done.error().message()}});
  }
  loaded = std::move(directory);
  may_write = readable;
  changed.notify_all();
}

// nullopt: the end.
std::optional<DeviceDirectory> StateKeeper::State::next() {
  const Nanoseconds next_write = written_at + (write_failed ? kAfterFailure : kBetweenWrites);
  const MutexLock lock(mutex);
  writing_since.reset();
  while (!stop && (!wanted || clock.monotonic() < next_write)) {
    changed.wait_for(mutex, wanted ? Nanoseconds(kBetweenWrites) : Nanoseconds(kIdle));
  }
  if (wanted) writing_since = clock.monotonic();
  return std::exchange(wanted, std::nullopt);
}

// False: it could not be written.
bool StateKeeper::State::write(const DeviceDirectory& directory) {
  const Result<Done> saved = directory.save();
  written_at = clock.monotonic();
  if (!saved && !std::exchange(write_failed, true)) {
    log.warn("indexes are not kept over a restart", {{"error", saved.error().message()}});
  }
  if (saved) write_failed = false;
  return !write_failed;
}

// For another try, unless a newer one waits already.
void StateKeeper::State::keep(DeviceDirectory directory) {
  const MutexLock lock(mutex);
  if (!wanted && !stop) wanted = std::move(directory);
}

StateKeeper::StateKeeper(std::string folder, const Clock& clock, Log& log)
    : clock_(clock), log_(log), state_(std::make_shared<State>(std::move(folder), clock, log)) {}

StateKeeper::~StateKeeper() { stop(clock_.monotonic() + kEnd); }

DeviceDirectory StateKeeper::load(Nanoseconds deadline) {
  DeviceDirectory empty(state_->folder);
  if (const Result<Done> started = thread_.start("state", [state = state_] { run(*state); }); !started) {
    log_.error("indexes are not kept over a restart", {{"error", started.error().message()}});
    return empty;
  }
  const MutexLock lock(state_->mutex);
  while (!state_->loaded && clock_.monotonic() < deadline) {
    state_->changed.wait_for(state_->mutex, deadline - clock_.monotonic());
  }
  if (state_->loaded) return *std::exchange(state_->loaded, std::nullopt);
  state_->given_up = true;
  log_.error("the state folder does not answer: indexes start anew and are not kept over a restart",
             {{"path", state_->folder}});
  return empty;
}

void StateKeeper::save(const DeviceDirectory& directory) {
  const MutexLock lock(state_->mutex);
  if (!state_->may_write) return;
  state_->wanted = directory;
  state_->changed.notify_all();
  const bool late = state_->writing_since && clock_.monotonic() > *state_->writing_since + kLate;
  if (late && !std::exchange(state_->late_reported, true)) {
    log_.error("the state folder does not answer", {{"path", state_->folder}});
  }
  if (!late) state_->late_reported = false;
}

bool StateKeeper::stop(Nanoseconds deadline) {
  {
    const MutexLock lock(state_->mutex);
    state_->stop = true;
    state_->changed.notify_all();
  }
  const bool ended = thread_.join(clock_, deadline);
  if (!ended)
    log_.error("the state folder does not answer: what changed last is not saved",
               {{"path", state_->folder}});
  return ended;
}

void StateKeeper::run(State& state) noexcept try {
  state.load();
  while (std::optional<DeviceDirectory> directory = state.next()) {
    if (!state.write(*directory)) state.keep(*std::move(directory));
  }
} catch (...) {  // out of memory: what is on the disk stays
}

}  // namespace gpumeter
