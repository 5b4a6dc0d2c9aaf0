#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string_view>

#include "base/clock.hpp"
#include "config/config.hpp"
#include "daemon/log/format.hpp"

namespace spdlog {
class logger;
namespace details {
class thread_pool;
}
}  // namespace spdlog

namespace gpumeter {

/// The daemon's log: one line an event, a message of fixed words and fields for what varies,
///   log.warn("device lost", {{"gpu", "0"}, {"uuid", info.uuid}});
/// Any thread, also under a lock: a call queues the record and waits for nothing, since a thread of the log's
/// own ("log") writes. The queue is bounded and drops its oldest records. A record that is dropped or cannot
/// be written is counted, and a line reports the gap when the queue is empty again. No call throws.
class Log {
 public:
  using Fields = std::initializer_list<LogField>;

  /// `clock` must outlive the log. The log goes to the journal if the settings say auto and stderr is the
  /// journal's stream. If the kernel gives no thread, each call writes by itself.
  Log(const Clock& clock, const config::Logging& settings);
  /// Waits up to a second for the queue to empty. A thread that still hangs then is left behind.
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  void debug(std::string_view message, Fields fields = {}) noexcept;
  void info(std::string_view message, Fields fields = {}) noexcept;
  void warn(std::string_view message, Fields fields = {}) noexcept;
  void error(std::string_view message, Fields fields = {}) noexcept;

  /// Takes on other settings, as a reload brings them. Queued records keep their format.
  void configure(const config::Logging& settings);

  /// Waits up to `at_most` until the records so far are written or dropped. False: the reader of stderr or
  /// the journal stalls, and the process must end by _exit().
  bool flush(Nanoseconds at_most);

  /// Records that were dropped or could not be written.
  std::uint64_t dropped() const;

 private:
  struct Progress;
  class Sink;
  static constexpr std::size_t kFormats = 3;

  void write(config::LogLevel level, std::string_view message, Fields fields) noexcept;

  const Clock& clock_;
  const std::shared_ptr<Progress> progress_;  ///< the thread's too, which may outlive the log
  std::array<std::shared_ptr<spdlog::logger>, kFormats> loggers_;  ///< constant after the construction
  std::atomic<std::size_t> chosen_{0};                             ///< of loggers_
  std::shared_ptr<spdlog::details::thread_pool> pool_;             ///< null: the kernel gave no thread
};

}  // namespace gpumeter
