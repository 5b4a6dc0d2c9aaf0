#include "daemon/log/queue.hpp"

#include <spdlog/common.h>  // which the next needs and does not include
#include <spdlog/details/mpmc_blocking_q.h>

#include <atomic>
#include <utility>

namespace gpumeter {
namespace {

// The start of 500 devices, two lines each. An empty place takes 72 bytes.
constexpr std::size_t kMostRecords = 1024;

constexpr auto kIdle = std::chrono::minutes(10);
constexpr auto kEnd = std::chrono::seconds(1);

}  // namespace

struct LogQueue::State {
  std::uint64_t dropped() { return waiting.overrun_counter() + failed; }

  spdlog::details::mpmc_blocking_queue<QueuedRecord> waiting{kMostRecords};
  std::atomic<std::uint64_t> put{0};
  std::atomic<std::uint64_t> taken{0};   // by the thread, and written or lost
  std::atomic<std::uint64_t> failed{0};  // among them
  std::uint64_t reported = 0;            // of dropped(), in the log; of who writes
  Mutex mutex;
  Condition progress;
};

LogQueue::LogQueue(const Clock& clock) : clock_(clock), state_(std::make_shared<State>()), thread_(clock) {
  const auto body = [state = state_] {
    run(*state);
    return std::nullopt;
  };
  has_thread_ = static_cast<bool>(thread_.start("log", body));
}

LogQueue::~LogQueue() {
  if (!has_thread_) return;
  const Nanoseconds deadline = clock_.monotonic() + kEnd;
  flush(kEnd);
  state_->waiting.enqueue_nowait({});
  thread_.join(deadline);
}

void LogQueue::put(QueuedRecord record) {
  ++state_->put;
  if (has_thread_) return state_->waiting.enqueue_nowait(std::move(record));
  const MutexLock lock(state_->mutex);
  write(*state_, record);
  ++state_->taken;
}

bool LogQueue::flush(Nanoseconds at_most) {
  const Nanoseconds deadline = clock_.monotonic() + at_most;
  const std::uint64_t wanted = state_->put;
  MutexLock lock(state_->mutex);
  while (state_->taken + state_->waiting.overrun_counter() < wanted) {
    if (clock_.monotonic() >= deadline) return false;
    state_->progress.wait_for(state_->mutex, deadline - clock_.monotonic());
  }
  return true;
}

std::uint64_t LogQueue::dropped() const { return state_->dropped(); }

void LogQueue::run(State& state) noexcept {
  while (true) {
    QueuedRecord record;
    if (!state.waiting.dequeue_for(record, kIdle)) continue;
    if (!record.output) return;
    try {
      write(state, record);
    } catch (...) {  // out of memory
      ++state.failed;
    }
    const MutexLock lock(state.mutex);
    ++state.taken;
    state.progress.notify_all();
  }
}

// The gap is reported once the queue is empty: a slow reader gets records, not reports.
void LogQueue::write(State& state, const QueuedRecord& record) {
  if (!record.output->write(record.level, record.text)) {
    ++state.failed;
    return;
  }
  const std::uint64_t dropped = state.dropped();
  if (dropped == state.reported || state.waiting.size() > 0) return;
  const LogField count{"records", std::to_string(dropped - state.reported)};
  const auto level = config::LogLevel::warn;
  const LogRecord gap{record.time, level, "log records were dropped: they could not be written", {&count, 1}};
  if (record.output->write(level, record.output->encoded(gap))) state.reported = dropped;
}

}  // namespace gpumeter
