#include "base/scheduler.hpp"

#include <pthread.h>

#include <algorithm>
#include <map>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/worker.hpp"

namespace gpumeter {
namespace {

constexpr Nanoseconds kAfterFailure = std::chrono::seconds(1);
constexpr Nanoseconds kGrid = std::chrono::seconds(1);
// After the full second: a timer's error does not move a turn into the second before.
constexpr Nanoseconds kAfterSecond = std::chrono::milliseconds(50);
// Long waits are split, because the standard library adds the wait to the time of day.
constexpr Nanoseconds kLongestWait = std::chrono::hours(1);

}  // namespace

struct Scheduler::State : std::enable_shared_from_this<State> {
  struct Task {
    std::shared_ptr<const Job> job;
    Nanoseconds due{};
    std::optional<Nanoseconds> since;  ///< the start of the turn under way
    bool is_woken = false;             ///< during the turn under way
    bool is_late = false;              ///< reported
    bool is_removed = false;
  };

  explicit State(const Clock& its_clock) : clock(its_clock) {}

  bool spawn() GPUMETER_EXCLUDES(mutex);
  void run() GPUMETER_EXCLUDES(mutex);
  void take_turn(std::map<Id, Task>::iterator task) GPUMETER_REQUIRES(mutex);
  std::map<Id, Task>::iterator due_task(Nanoseconds now) GPUMETER_REQUIRES(mutex);
  Nanoseconds until_next(Nanoseconds now) const GPUMETER_REQUIRES(mutex);
  Nanoseconds due_after(Nanoseconds pause) const;

  const Clock& clock;
  mutable Mutex mutex;
  Condition timer;    ///< a job was added or woken: the thread that waits for the next turn looks again
  Condition reserve;  ///< a further thread is needed
  Condition ended;    ///< a turn or a thread has ended
  std::map<Id, Task> tasks GPUMETER_GUARDED_BY(mutex);
  Id next_id GPUMETER_GUARDED_BY(mutex) = 0;
  std::size_t threads GPUMETER_GUARDED_BY(mutex) = 0;
  std::size_t resting GPUMETER_GUARDED_BY(mutex) = 0;  ///< threads that wait in `reserve`
  bool has_timer GPUMETER_GUARDED_BY(mutex) = false;   ///< a thread waits in `timer`
  bool is_stopping GPUMETER_GUARDED_BY(mutex) = false;
};

// The grid is that of CLOCK_BOOTTIME, by which the history counts its seconds.
Nanoseconds Scheduler::State::due_after(Nanoseconds pause) const {
  const Nanoseconds now = clock.monotonic();
  if (pause >= kForever - now) return kForever;
  const Nanoseconds due = now + pause;
  if (pause < kGrid) return due;
  const Nanoseconds slept = clock.boottime() - now;
  const Nanoseconds since_grid = (due + slept - kAfterSecond) % kGrid;
  return since_grid < kGrid / 2 ? due - since_grid : due - since_grid + kGrid;
}

std::map<Scheduler::Id, Scheduler::State::Task>::iterator Scheduler::State::due_task(Nanoseconds now) {
  auto first = tasks.end();
  for (auto task = tasks.begin(); task != tasks.end(); ++task) {
    const bool can_run = !task->second.since && !task->second.is_removed && task->second.due <= now;
    if (can_run && (first == tasks.end() || task->second.due < first->second.due)) first = task;
  }
  return first;
}

Nanoseconds Scheduler::State::until_next(Nanoseconds now) const {
  Nanoseconds next = kLongestWait;
  for (const auto& [id, task] : tasks) {
    if (!task.since && !task.is_removed) next = std::min(next, task.due - now);
  }
  return next;
}

void Scheduler::State::take_turn(std::map<Id, Task>::iterator task) {
  std::shared_ptr<const Job> job = task->second.job;
  task->second.since = clock.monotonic();
  mutex.unlock();
  Nanoseconds pause = kAfterFailure;
  try {
    pause = job->turn();
  } catch (...) {  // out of memory: the job tries again
  }
  mutex.lock();
  // Only remove() erases a task, and it leaves a task whose turn is under way in the map.
  task->second.since.reset();
  if (!is_stopping)
    task->second.due = std::exchange(task->second.is_woken, false) ? Nanoseconds{0} : due_after(pause);
  const bool is_removed = task->second.is_removed;
  if (is_removed) tasks.erase(task);
  ended.notify_all();
  timer.notify_all();  // the thread that waits there did not count this task
  if (!is_removed) return;
  mutex.unlock();
  job.reset();  // what the turn owns may take long to close
  mutex.lock();
}

// One thread waits for the next turn and takes it; the others rest. During that turn no thread waits for the
// timer. check() wakes or starts another thread only if a job becomes due meanwhile, so that a turn costs one
// wake-up.
void Scheduler::State::run() {
  mutex.lock();
  while (!is_stopping) {
    const Nanoseconds now = clock.monotonic();
    if (const auto task = due_task(now); task != tasks.end()) {
      take_turn(task);
    } else if (has_timer) {
      if (threads > kThreads && resting > 0) break;
      ++resting;
      reserve.wait_for(mutex, kLongestWait);
      --resting;
    } else {
      has_timer = true;
      timer.wait_for(mutex, std::min(until_next(now), kLongestWait));
      has_timer = false;
    }
  }
  --threads;
  ended.notify_all();
  mutex.unlock();
}

bool Scheduler::State::spawn() try {
  const AllSignalsBlocked blocked;
  {
    const MutexLock lock(mutex);
    ++threads;
  }
  std::thread([state = shared_from_this()] {
    pthread_setname_np(pthread_self(), "parts");
    state->run();
  }).detach();
  return true;
} catch (const std::system_error&) {
  const MutexLock lock(mutex);
  --threads;
  return false;
}

Scheduler::Scheduler(const Clock& clock) : state_(std::make_shared<State>(clock)) {}

Scheduler::~Scheduler() { stop(Nanoseconds{0}); }

Result<Done> Scheduler::start() {
  for (std::size_t i = 0; i < kThreads; ++i) {
    if (!state_->spawn()) return Error("cannot start the threads of the parts: the kernel refused a thread");
  }
  return Done{};
}

Scheduler::Id Scheduler::add(Job job, Nanoseconds first) {
  const Nanoseconds due = first == kForever ? kForever : state_->clock.monotonic() + first;
  const MutexLock lock(state_->mutex);
  state_->tasks[state_->next_id] = {std::make_shared<const Job>(std::move(job)), due};
  state_->timer.notify_all();
  return state_->next_id++;
}

void Scheduler::wake(Id job) {
  const MutexLock lock(state_->mutex);
  const auto task = state_->tasks.find(job);
  if (task == state_->tasks.end()) return;
  task->second.due = Nanoseconds{0};
  task->second.is_woken = task->second.since.has_value();
  state_->timer.notify_all();
}

bool Scheduler::remove(Id job, Nanoseconds deadline) {
  const MutexLock lock(state_->mutex);
  const auto task = state_->tasks.find(job);
  if (task == state_->tasks.end()) return true;
  task->second.is_removed = true;
  while (state_->tasks.contains(job) && task->second.since) {
    const Nanoseconds left = deadline - state_->clock.monotonic();
    if (left <= Nanoseconds{0}) return false;
    state_->ended.wait_for(state_->mutex, std::min(left, kLongestWait));
  }
  state_->tasks.erase(job);
  return true;
}

void Scheduler::check() {
  std::vector<std::pair<std::shared_ptr<const Job>, bool>> changes;
  bool needs_thread = false;
  {
    const MutexLock lock(state_->mutex);
    const Nanoseconds now = state_->clock.monotonic();
    for (auto& [id, task] : state_->tasks) {
      if (task.is_removed) continue;  // its owner does not wait for it any more
      const bool is_late = task.since && now - *task.since > task.job->deadline;
      if (std::exchange(task.is_late, is_late) != is_late) changes.emplace_back(task.job, is_late);
    }
    if (!state_->is_stopping && !state_->has_timer && state_->due_task(now) != state_->tasks.end()) {
      state_->reserve.notify_all();
      needs_thread = state_->resting == 0 && state_->threads < kMostThreads;
    }
  }
  if (needs_thread) state_->spawn();
  for (const auto& [job, is_late] : changes) job->late(is_late);
}

std::size_t Scheduler::threads() const {
  const MutexLock lock(state_->mutex);
  return state_->threads;
}

bool Scheduler::stop(Nanoseconds deadline) {
  // Destroyed here, after the lock: a thread that has just ended may still hold the state.
  std::map<Id, State::Task> done;
  const MutexLock lock(state_->mutex);
  state_->is_stopping = true;
  state_->timer.notify_all();
  state_->reserve.notify_all();
  while (state_->threads > 0) {
    const Nanoseconds left = deadline - state_->clock.monotonic();
    if (left <= Nanoseconds{0}) return false;
    state_->ended.wait_for(state_->mutex, std::min(left, kLongestWait));
  }
  done.swap(state_->tasks);
  return true;
}

}  // namespace gpumeter
