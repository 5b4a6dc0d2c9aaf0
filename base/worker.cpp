#include "base/worker.hpp"

#include <pthread.h>

#include <algorithm>
#include <system_error>

namespace gpumeter {
namespace {

constexpr Nanoseconds kAfterFailure = std::chrono::seconds(1);

// Long waits are split, because the standard library adds the wait to the time of day.
constexpr Nanoseconds kLongestWait = std::chrono::hours(1);

}  // namespace

struct Worker::State {
  explicit State(const Clock& its_clock) : clock(its_clock) {}

  // The first turn runs in any case, so that an owner may start a thread and abandon it.
  void start(Nanoseconds now) GPUMETER_EXCLUDES(mutex) {
    MutexLock lock(mutex);
    is_running = true;
    busy_since = last_turn = now;
  }

  void turn_ended() GPUMETER_EXCLUDES(mutex) {
    MutexLock lock(mutex);
    if (!stop) last_turn = clock.monotonic();
  }

  // Returns true when the next turn begins, and false on stop; the clock may be gone then.
  bool wait(Nanoseconds pause) GPUMETER_EXCLUDES(mutex) {
    MutexLock lock(mutex);
    busy_since.reset();
    const Nanoseconds begun = stop ? Nanoseconds{0} : clock.monotonic();
    while (!stop && !is_woken) {
      const Nanoseconds left = pause - (clock.monotonic() - begun);
      if (left <= Nanoseconds{0}) break;
      changed.wait_for(mutex, std::min(left, kLongestWait));
    }
    if (stop) return false;
    is_woken = false;
    busy_since = clock.monotonic();
    return true;
  }

  void ended() GPUMETER_EXCLUDES(mutex) {
    MutexLock lock(mutex);
    busy_since.reset();
    is_running = false;
    changed.notify_all();
  }

  const Clock& clock;
  mutable Mutex mutex;
  Condition changed;
  bool is_running GPUMETER_GUARDED_BY(mutex) = false;
  bool is_woken GPUMETER_GUARDED_BY(mutex) = false;
  bool stop GPUMETER_GUARDED_BY(mutex) = false;
  std::optional<Nanoseconds> busy_since GPUMETER_GUARDED_BY(mutex);
  Nanoseconds last_turn GPUMETER_GUARDED_BY(mutex){};
};

Worker::Worker(const Clock& clock) : clock_(clock), state_(std::make_shared<State>(clock)) {}

Worker::~Worker() {
  request_stop();
  if (thread_.joinable()) thread_.detach();
}

Result<Done> Worker::start(const std::string& name, Turn turn, std::function<void()> end) try {
  const AllSignalsBlocked blocked;
  const std::string short_name = name.substr(0, 15);
  state_->start(clock_.monotonic());
  thread_ = std::thread([state = state_, short_name, turn = std::move(turn), end = std::move(end)]() mutable {
    pthread_setname_np(pthread_self(), short_name.c_str());
    run(*state, turn, end);
    turn = nullptr;  // destroys what the functions own before the worker reports its end
    end = nullptr;
    state->ended();
  });
  return Done{};
} catch (const std::system_error& problem) {
  state_->ended();
  return Error("cannot start the thread " + name + ": " + problem.code().message());
}

void Worker::run(State& state, const Turn& turn, const std::function<void()>& end) {
  std::optional<Nanoseconds> pause;
  do {
    try {
      pause = turn();
      state.turn_ended();
    } catch (...) {
      pause = kAfterFailure;
    }
  } while (pause && state.wait(*pause));
  try {
    if (end) end();
  } catch (...) {  // out of memory: the thread ends regardless
  }
}

void Worker::wake() {
  MutexLock lock(state_->mutex);
  state_->is_woken = true;
  state_->changed.notify_all();
}

void Worker::request_stop() {
  MutexLock lock(state_->mutex);
  state_->stop = true;
  state_->changed.notify_all();
}

bool Worker::is_stopping() const {
  MutexLock lock(state_->mutex);
  return state_->stop;
}

bool Worker::join(Nanoseconds deadline) {
  if (!thread_.joinable()) return true;
  bool hangs = false;
  {
    MutexLock lock(state_->mutex);
    while (state_->is_running && clock_.monotonic() < deadline) {
      state_->changed.wait_for(state_->mutex, std::min(deadline - clock_.monotonic(), kLongestWait));
    }
    hangs = state_->is_running;
  }
  hangs ? thread_.detach() : thread_.join();
  return !hangs;
}

bool Worker::is_idle() const {
  MutexLock lock(state_->mutex);
  return !state_->is_running || (!state_->is_woken && !state_->busy_since);
}

std::optional<Nanoseconds> Worker::busy_since() const {
  MutexLock lock(state_->mutex);
  return state_->busy_since;
}

Nanoseconds Worker::last_turn() const {
  MutexLock lock(state_->mutex);
  return state_->last_turn;
}

bool Worker::is_busy_for(Nanoseconds time) const {
  const std::optional<Nanoseconds> since = busy_since();
  return since && clock_.monotonic() > *since + time;
}

}  // namespace gpumeter
