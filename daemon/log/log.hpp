#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string_view>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "config/config.hpp"
#include "daemon/log/format.hpp"
#include "daemon/log/output.hpp"
#include "daemon/log/queue.hpp"

namespace gpumeter {

/// The daemon's log: one line an event, a message of fixed words and fields for what varies,
///   log.warn("device lost", {{"gpu", "0"}, {"uuid", info.uuid}});
/// Any thread, also under a lock: a call queues the record and waits for nothing, since a thread of the log's
/// own writes. No exception leaves a call; a record that finds no room or cannot be written is dropped and
/// counted.
class Log {
 public:
  using Fields = std::initializer_list<LogField>;

  /// `clock` must outlive the log. The journal is used where the settings say auto and stderr is its stream.
  /// The end waits up to a second for what is queued.
  Log(const Clock& clock, const config::Logging& settings);
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  void debug(std::string_view message, Fields fields = {}) noexcept;
  void info(std::string_view message, Fields fields = {}) noexcept;
  void warn(std::string_view message, Fields fields = {}) noexcept;
  void error(std::string_view message, Fields fields = {}) noexcept;

  /// Takes on other settings, as a reload brings them.
  void configure(const config::Logging& settings) GPUMETER_EXCLUDES(mutex_);

  /// Waits up to `at_most` until what was logged so far is written. False: stderr or the journal stalls, and
  /// the process must end by _exit().
  bool flush(Nanoseconds at_most) { return queue_.flush(at_most); }

  /// How many records were dropped.
  std::uint64_t dropped() const { return queue_.dropped(); }

 private:
  void write(config::LogLevel level, std::string_view message, Fields fields) noexcept
      GPUMETER_EXCLUDES(mutex_);

  const Clock& clock_;
  LogQueue queue_;
  Mutex mutex_;
  std::shared_ptr<const LogOutput> output_ GPUMETER_GUARDED_BY(mutex_);
};

}  // namespace gpumeter
