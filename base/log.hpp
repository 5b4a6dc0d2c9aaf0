#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/options.hpp"
#include "base/text.hpp"
#include "base/worker.hpp"

namespace spdlog {
class logger;
}

namespace gpumeter {

enum class LogLevel : std::uint8_t { debug, info, warn, error };
enum class LogFormat : std::uint8_t { automatic, logfmt, json };

inline constexpr EnumNames<LogLevel, 4> kLogLevelNames = {{{LogLevel::debug, "debug"},
                                                           {LogLevel::info, "info"},
                                                           {LogLevel::warn, "warn"},
                                                           {LogLevel::error, "error"}}};
inline constexpr EnumNames<LogFormat, 3> kLogFormatNames = {
    {{LogFormat::automatic, "auto"}, {LogFormat::logfmt, "logfmt"}, {LogFormat::json, "json"}}};
constexpr const auto& names_of(LogLevel) noexcept { return kLogLevelNames; }
constexpr const auto& names_of(LogFormat) noexcept { return kLogFormatNames; }
constexpr std::string_view to_string(LogLevel level) noexcept { return kLogLevelNames.of(level); }

/// `log` in the configuration.
struct Logging {
  LogLevel level = LogLevel::info;
  LogFormat format = LogFormat::automatic;  ///< the journal if systemd runs the daemon, otherwise logfmt
  bool operator==(const Logging&) const = default;
};
extern const options::Section kLogSection;

/// One field of a log line in addition to its message. The code chooses the names: lower case letters and
/// '_'.
struct LogField {
  std::string_view name;
  std::string value;  ///< any bytes, escaped by the formats; empty: unknown, and the line omits the field
};

/// A log record without its time, which spdlog's pattern adds.
struct LogRecord {
  LogLevel level;
  std::string_view message;
  std::span<const LogField> fields;
};

/// Returns `level=info msg="device lost" gpu=0`, quoted and escaped as in Go's slog. Invisible characters are
/// escaped too.
std::string to_logfmt(const LogRecord& record);

/// Returns the record as the rest of a JSON object, without its opening brace, in ASCII. Bytes that are not
/// UTF-8 become U+FFFD.
std::string to_json(const LogRecord& record);

/// Returns a journal entry: fields "NAME=value", each with a NUL at its end. The fields are MESSAGE, PRIORITY
/// (syslog's), SYSLOG_IDENTIFIER and every field of the record in upper case. MESSAGE ends with the fields in
/// logfmt, because journalctl shows only MESSAGE. The names uuid and vendor become GPU_UUID and GPU_VENDOR,
/// because they are ambiguous among other services' fields.
std::string to_journal(const LogRecord& record);

/// Returns the text with escapes for invisible characters: \n, \t, \x1b, \u202e; bytes that are not UTF-8
/// become \xff. Logged text can therefore neither begin a line of its own nor control a terminal.
std::string escape_invisible(std::string_view text);

/// Returns a value in logfmt, unchanged or in quotes if it is empty or contains a space, '=', '"' or a
/// character that needs an escape.
std::string logfmt_value(std::string_view text);

/// The daemon's log: one line for each event, with a message of fixed words and fields for variable data,
///   log.warn("device lost", {{"gpu", "0"}, {"uuid", info.uuid}});
/// Any thread, also while holding a lock: a call queues the record without waiting, and the log's own thread
/// ("log") writes it. The queue is bounded and drops its oldest records. Records that are dropped or cannot
/// be written are counted. A line reports the gap when the queue is empty again. No call throws.
class Log {
 public:
  using Fields = std::initializer_list<LogField>;

  /// Sends an entry encoded by to_journal(). May block. Returns false if the journal rejects the entry.
  using Journal = bool (*)(std::span<const std::string> fields);

  /// `clock` must outlive the log. `journal` is null unless stderr is the journal's stream: the log goes
  /// there if the settings request auto. If the kernel refuses a thread, each call writes by itself.
  Log(const Clock& clock, const Logging& settings, Journal journal = nullptr);
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
  const bool has_journal_;
  const std::shared_ptr<Queue> queue_;  ///< shared with the thread, which may outlive the log
  Loggers loggers_;                     ///< constant after construction, by format
  std::atomic<std::size_t> chosen_{0};  ///< index into loggers_
  Worker worker_;
  bool has_thread_ = false;  ///< constant after construction; false: the kernel refused the thread
};

}  // namespace gpumeter
