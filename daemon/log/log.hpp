#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string_view>

#include "base/clock.hpp"
#include "base/options.hpp"
#include "base/worker.hpp"
#include "daemon/log/format.hpp"

namespace spdlog {
class logger;
}

namespace gpumeter {

enum class LogFormat : std::uint8_t { automatic, logfmt, json };
inline constexpr EnumNames<LogFormat, 3> kLogFormatNames = {
    {{LogFormat::automatic, "auto"}, {LogFormat::logfmt, "logfmt"}, {LogFormat::json, "json"}}};
constexpr const auto& names_of(LogFormat) noexcept { return kLogFormatNames; }

/// `log` in the configuration.
struct Logging {
  LogLevel level = LogLevel::info;
  LogFormat format = LogFormat::automatic;  ///< the journal if systemd runs the daemon, otherwise logfmt
  bool operator==(const Logging&) const = default;
};
extern const options::Section kLogSection;

/// The daemon's log: one line for each event, with a message of fixed words and fields for variable data,
///   log.warn("device lost", {{"gpu", "0"}, {"uuid", info.uuid}});
/// Any thread, also while holding a lock: a call queues the record without waiting, and the log's own thread
/// ("log") writes it. The queue is bounded and drops its oldest records. Records that are dropped or cannot
/// be written are counted. A line reports the gap when the queue is empty again. No call throws.
class Log {
 public:
  using Fields = std::initializer_list<LogField>;

  /// `clock` must outlive the log. The log goes to the journal if the settings request auto and stderr is the
  /// journal's stream. If the kernel refuses a thread, each call writes by itself.
  Log(const Clock& clock, const Logging& settings);
  /// Waits up to 1 s for the queue to empty. A thread that still hangs then is left behind.
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  void debug(std::string_view message, Fields fields = {}) noexcept;
  void info(std::string_view message, Fields fields = {}) noexcept;
  void warn(std::string_view message, Fields fields = {}) noexcept;
  void error(std::string_view message, Fields fields = {}) noexcept;

  /// Applies new settings, such as those of a reload. Queued records keep their format.
  void configure(const Logging& settings);

  /// Waits up to `at_most` until all records so far are written or dropped. Returns false if the reader of
  /// stderr or the journal stalls; the process must then end by _exit().
  bool flush(Nanoseconds at_most);

  /// Returns the number of records that were dropped or could not be written.
  std::uint64_t dropped() const;

 private:
  struct Record;
  struct Queue;
  class Sink;
  static constexpr std::size_t kFormats = 3;
  using Loggers = std::array<std::shared_ptr<spdlog::logger>, kFormats>;

  static void write_record(const Record& record, const Loggers& loggers);
  void write(LogLevel level, std::string_view message, Fields fields) noexcept;

  const Clock& clock_;
  const std::shared_ptr<Queue> queue_;  ///< shared with the thread, which may outlive the log
  Loggers loggers_;                     ///< constant after construction, by format
  std::atomic<std::size_t> chosen_{0};  ///< index into loggers_
  Worker worker_;
  bool has_thread_ = false;  ///< constant after construction; false: the kernel refused the thread
};

}  // namespace gpumeter
