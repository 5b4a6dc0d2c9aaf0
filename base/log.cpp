#include "base/log.hpp"

#include <poll.h>
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <iterator>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/json/scalars.hpp"
#include "base/text.hpp"

namespace gpumeter {
namespace {

/// True for control characters and for characters that reorder or break the surrounding text: Unicode's bidi
/// controls, zero widths and line separators.
bool is_invisible(char32_t code) noexcept {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0xad || (code >= 0x200b && code <= 0x200f) ||
         (code >= 0x2028 && code <= 0x202e) || (code >= 0x2060 && code <= 0x206f) || code == 0xfeff;
}

void append_hex(std::string& text, std::string_view prefix, unsigned number, unsigned digits) {
  text += prefix;
  while (digits-- > 0) text += "0123456789abcdef"[number >> (4 * digits) & 0xfU];
}

void append_escape(std::string& text, char32_t code) {
  constexpr std::string_view kLetters = "abtnvfr";  // from \a (7)
  if (code >= 7 && code <= 13) {
    (text += '\\') += kLetters[code - 7];
  } else if (code < 0x80) {
    append_hex(text, "\\x", code, 2);
  } else {
    append_hex(text, "\\u", code, 4);
  }
}

std::string journal_name(std::string_view name) {
  if (name == "uuid") return "GPU_UUID";
  if (name == "vendor") return "GPU_VENDOR";
  std::string upper(name);
  std::transform(upper.begin(), upper.end(), upper.begin(), [](char c) {
    if (c >= 'a' && c <= 'z') return static_cast<char>(c - 'a' + 'A');
    return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ? c : '_';
  });
  return upper;
}

/// Returns the priority number of syslog(3).
char priority(LogLevel level) noexcept {
  constexpr std::string_view kDebugInfoWarningError = "7643";
  return kDebugInfoWarningError[static_cast<std::size_t>(level)];
}

/// Calls `add` for each field that has a value.
template <class Add>
void each_known(const LogRecord& record, Add add) {
  for (const LogField& field : record.fields) {
    if (!field.value.empty()) add(field);
  }
}

std::string fields_in_logfmt(const LogRecord& record) {
  std::string text;
  each_known(record, [&](const LogField& field) {
    text.append(" ").append(field.name).append("=").append(logfmt_value(field.value));
  });
  return text;
}

}  // namespace

std::string to_logfmt(const LogRecord& record) {
  return "level=" + std::string(kLogLevelNames.of(record.level)) + " msg=" + logfmt_value(record.message) +
         fields_in_logfmt(record);
}

std::string to_json(const LogRecord& record) {
  std::string text =
      "\"level\":" + json_quoted(kLogLevelNames.of(record.level)) + ",\"msg\":" + json_quoted(record.message);
  each_known(record, [&](const LogField& field) {
    text.append(",").append(json_quoted(field.name)).append(":").append(json_quoted(field.value));
  });
  return text + "}";
}

std::string to_journal(const LogRecord& record) {
  std::string entry = "MESSAGE=" + escape_invisible(record.message) + fields_in_logfmt(record) + '\0';
  entry.append("PRIORITY=") += priority(record.level);
  entry.append(1, '\0').append("SYSLOG_IDENTIFIER=gpumeter").append(1, '\0');
  each_known(record, [&](const LogField& field) {
    entry.append(journal_name(field.name)).append("=").append(escape_invisible(field.value)).append(1, '\0');
  });
  return entry;
}

std::string escape_invisible(std::string_view text) {
  std::string escaped;
  while (!text.empty()) {
    const Character first = take_character(text);
    if (!first) {
      append_hex(escaped, "\\x", static_cast<unsigned char>(first.bytes.front()), 2);
    } else if (is_invisible(first.code)) {
      append_escape(escaped, first.code);
    } else {
      escaped += first.bytes;
    }
  }
  return escaped;
}

std::string logfmt_value(std::string_view text) {
  std::string escaped = escape_invisible(text);
  const bool plain = !text.empty() && escaped == text && text.find_first_of(" =\"") == std::string_view::npos;
  if (plain) return escaped;
  // Backslashes of the text itself are escaped, to distinguish them from those of the escapes.
  std::string quoted = "\"";
  std::string_view rest = text;
  for (std::size_t special = 0; special != std::string_view::npos;) {
    special = rest.find_first_of("\"\\");
    quoted += escape_invisible(rest.substr(0, special));
    if (special == std::string_view::npos) break;
    (quoted += '\\') += rest[special];
    rest.remove_prefix(special + 1);
  }
  return quoted + "\"";
}

namespace {

// Room for the start of 500 devices with two lines each.
constexpr std::size_t kMostRecords = 1024;

constexpr auto kEnd = std::chrono::seconds(1);

/// The encoding of records. spdlog's pattern adds the time to the result of `encode`.
struct Format {
  const char* pattern;
  std::string (*encode)(const LogRecord&);
};
constexpr std::size_t kLogfmt = 0;
constexpr std::size_t kJson = 1;
constexpr std::size_t kJournal = 2;
constexpr Format kFormatTable[] = {
    {"ts=%Y-%m-%dT%H:%M:%S.%eZ %v\n", to_logfmt},
    {"{\"ts\":\"%Y-%m-%dT%H:%M:%S.%eZ\",%v\n", to_json},
    {"%v", to_journal},
};

/// spdlog numbers its levels in the same order, starting with trace.
spdlog::level::level_enum level_of(LogLevel level) noexcept {
  static_assert(spdlog::level::err - spdlog::level::debug ==
                static_cast<int>(LogLevel::error) - static_cast<int>(LogLevel::debug));
  return static_cast<spdlog::level::level_enum>(spdlog::level::debug + static_cast<int>(level));
}

// Another process that shares the pipe may make it non-blocking; EAGAIN then means that the reader is slow.
bool may_write_again(int error) {
  if (error == EINTR) return true;
  pollfd room{STDERR_FILENO, POLLOUT, 0};
  return error == EAGAIN && (poll(&room, 1, -1) > 0 || errno == EINTR);
}

std::vector<std::string> unpack(std::string_view entry) {
  std::vector<std::string> fields;
  while (!entry.empty()) {
    fields.emplace_back(entry.substr(0, entry.find('\0')));
    entry.remove_prefix(fields.back().size() + 1);
  }
  return fields;
}

/// Writes all of the text to stderr by the descriptor alone: a stalled reader must not hold a lock of stdio.
/// Blocks while the reader does not read. Returns false if stderr accepts no more data.
bool write_to_stderr(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written < 0 && !may_write_again(errno)) return false;
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

using options::Option;
using options::option;
using options::Reload;

// One row an option.
// clang-format off
constexpr Option kOptions[] = {
    option<&Logging::level>("level", Reload::applies, "Lowest level that is logged."),
    option<&Logging::format>("format", Reload::applies, "auto: the journal if systemd runs the daemon, otherwise logfmt on stderr."),
};
// clang-format on

}  // namespace

constinit const options::Section kLogSection = options::section("log", kOptions);

/// A queued record. `logger` is an index into Log's loggers.
struct Log::Record {
  std::size_t logger;
  spdlog::level::level_enum level;
  spdlog::log_clock::time_point time;
  std::string text;
};

/// The queue and the counts, which the thread shares with the log and may outlive it with. spdlog's own queue
/// allocates the room for all records in advance, which would be a thirtieth of the daemon's memory.
struct Log::Queue {
  std::uint64_t dropped() const { return failed + overrun; }

  void push(Record record) GPUMETER_EXCLUDES(mutex) {
    const MutexLock lock(mutex);
    records.push_back(std::move(record));
    if (records.size() <= kMostRecords) return;
    records.pop_front();
    ++overrun;
  }
  std::optional<Record> pop() GPUMETER_EXCLUDES(mutex) {
    const MutexLock lock(mutex);
    if (records.empty()) return std::nullopt;
    std::optional<Record> oldest = std::move(records.front());
    records.pop_front();
    return oldest;
  }
  bool is_empty() const GPUMETER_EXCLUDES(mutex) {
    const MutexLock lock(mutex);
    return records.empty();
  }

  mutable Mutex mutex;
  std::deque<Record> records GPUMETER_GUARDED_BY(mutex);
  std::atomic<std::uint64_t> logged{0};
  std::atomic<std::uint64_t> finished{0};  ///< records that were written or have failed
  std::atomic<std::uint64_t> failed{0};
  std::atomic<std::uint64_t> overrun{0};   ///< records that made room for younger ones
  std::atomic<std::uint64_t> reported{0};  ///< the part of dropped() that the log has reported
};

class Log::Sink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  /// `journal` is null if the records go to stderr.
  Sink(const Format& format, Journal journal, std::shared_ptr<Queue> queue)
      : base_sink(
            std::make_unique<spdlog::pattern_formatter>(format.pattern, spdlog::pattern_time_type::utc, "")),
        format_(format),
        journal_(journal),
        queue_(std::move(queue)) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    if (write(message)) report_gap(message.time);
    ++queue_->finished;
  }
  void flush_() override {}

 private:
  bool write(const spdlog::details::log_msg& message) {
    spdlog::memory_buf_t text;
    formatter_->format(message, text);
    const bool written = output({text.data(), text.size()});
    if (!written) ++queue_->failed;
    return written;
  }

  // An entry that the journal rejects goes to stderr.
  bool output(std::string_view text) {
    if (journal_ == nullptr) return write_to_stderr(text);
    const std::vector<std::string> fields = unpack(text);
    return journal_(fields) || write_to_stderr(fields.front() + "\n");
  }

  // Reports only when the queue is empty, so that a slow reader receives records first.
  void report_gap(spdlog::log_clock::time_point now) {
    const std::uint64_t dropped = queue_->dropped();
    if (dropped == queue_->reported || !queue_->is_empty()) return;
    const LogField count{"records", std::to_string(dropped - queue_->reported)};
    const std::string text =
        format_.encode({LogLevel::warn, "log records were dropped: they could not be written", {&count, 1}});
    if (write({now, {}, "", spdlog::level::warn, text})) queue_->reported = dropped;
  }

  const Format& format_;
  const Journal journal_;
  const std::shared_ptr<Queue> queue_;
};

Log::Log(const Clock& clock, const Logging& settings, Journal journal)
    : clock_(clock), has_journal_(journal != nullptr), queue_(std::make_shared<Queue>()), worker_(clock) {
  static_assert(std::size(kFormatTable) == kFormats);
  for (std::size_t i = 0; i < kFormats; ++i) {
    loggers_[i] = std::make_shared<spdlog::logger>(
        "", std::make_shared<Sink>(kFormatTable[i], i == kJournal ? journal : nullptr, queue_));
    // spdlog's own handler would write a line in another format to stderr.
    loggers_[i]->set_error_handler([queue = queue_](const std::string&) {
      ++queue->failed;
      ++queue->finished;
    });
  }
  configure(settings);
  const auto turn = [queue = queue_, loggers = loggers_] {
    while (const std::optional<Record> record = queue->pop()) write_record(*record, loggers);
    return Worker::kForever;
  };
  has_thread_ = static_cast<bool>(worker_.start("log", turn));
}

// A thread that hangs is left behind, as Worker's destructor does.
Log::~Log() {
  if (flush(kEnd)) worker_.stop();
}

void Log::write_record(const Record& record, const Loggers& loggers) {
  loggers[record.logger]->log(record.time, {}, record.level, record.text);
}

void Log::debug(std::string_view message, Fields fields) noexcept { write(LogLevel::debug, message, fields); }
void Log::info(std::string_view message, Fields fields) noexcept { write(LogLevel::info, message, fields); }
void Log::warn(std::string_view message, Fields fields) noexcept { write(LogLevel::warn, message, fields); }
void Log::error(std::string_view message, Fields fields) noexcept { write(LogLevel::error, message, fields); }

void Log::configure(const Logging& settings) {
  for (const auto& logger : loggers_) logger->set_level(level_of(settings.level));
  const std::size_t automatic = has_journal_ ? kJournal : kLogfmt;
  chosen_ = settings.format == LogFormat::json        ? kJson
            : settings.format == LogFormat::automatic ? automatic
                                                      : kLogfmt;
}

void Log::write(LogLevel level, std::string_view message, Fields fields) noexcept try {
  const std::size_t chosen = chosen_;
  if (!loggers_[chosen]->should_log(level_of(level))) return;
  const auto now = std::chrono::duration_cast<spdlog::log_clock::duration>(clock_.realtime());
  Record record{chosen, level_of(level), spdlog::log_clock::time_point(now),
                kFormatTable[chosen].encode({level, message, fields})};
  if (has_thread_) {
    queue_->push(std::move(record));
    worker_.wake();
  } else {
    write_record(record, loggers_);
  }
  ++queue_->logged;
} catch (...) {
  ++queue_->failed;  // out of memory, before the record was queued
}

bool Log::flush(Nanoseconds at_most) {
  const Nanoseconds deadline = clock_.monotonic() + at_most;
  const std::uint64_t wanted = queue_->logged;
  while (queue_->finished + queue_->overrun < wanted) {
    if (clock_.monotonic() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

std::uint64_t Log::dropped() const { return queue_->dropped(); }

}  // namespace gpumeter
