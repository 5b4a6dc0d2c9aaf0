#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "base/worker.hpp"
#include "daemon/log/output.hpp"

namespace gpumeter {

/// An encoded record on its way to the output that encoded it; a reload may bring another one meanwhile.
struct QueuedRecord {
  std::shared_ptr<const LogOutput> output;  ///< null ends the thread
  config::LogLevel level = config::LogLevel::info;
  Nanoseconds time{};  ///< CLOCK_REALTIME
  std::string text;
};

/// Writes log records on a thread of its own ("log"), since their reader may stall: nobody else ever waits
/// for it. The queue is bounded, and the newest records stay: what finds no room pushes the oldest out. Any
/// thread.
class LogQueue {
 public:
  /// Starts the thread, with every signal blocked. Where the kernel gives none, put() writes by itself.
  /// `clock` must outlive the queue, not the thread.
  explicit LogQueue(const Clock& clock);
  /// Waits up to a second for what is queued, and leaves a thread that hangs behind.
  ~LogQueue();
  LogQueue(const LogQueue&) = delete;
  LogQueue& operator=(const LogQueue&) = delete;

  /// Queues a record; waits for nothing. Once writing works again, a line in the log tells how many records
  /// were dropped.
  void put(QueuedRecord record);

  /// Waits up to `at_most` until what was put so far is written or dropped. False: the reader stalls.
  bool flush(Nanoseconds at_most);

  /// Records that were pushed out or could not be written.
  std::uint64_t dropped() const;

 private:
  struct State;
  static void run(State& state) noexcept;
  static void write(State& state, const QueuedRecord& record);

  const Clock& clock_;
  const std::shared_ptr<State> state_;  ///< the thread's too, which may outlive this object
  Worker thread_;
  bool has_thread_ = false;
};

}  // namespace gpumeter
