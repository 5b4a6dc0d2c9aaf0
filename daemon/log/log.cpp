#include "daemon/log/log.hpp"

#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>

#include <deque>
#include <iterator>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "daemon/log/output.hpp"

namespace gpumeter {
namespace {

// Room for the start of 500 devices with two lines each.
constexpr std::size_t kMostRecords = 1024;

constexpr auto kEnd = std::chrono::seconds(1);

/// The encoding and the output of records. spdlog's pattern adds the time to the result of `encode`.
struct Format {
  const char* pattern;
  std::string (*encode)(const LogRecord&);
  bool (*write)(std::string_view text);
};
constexpr Format kFormatTable[] = {
    {"ts=%Y-%m-%dT%H:%M:%S.%eZ %v\n", to_logfmt, write_to_stderr},
    {"{\"ts\":\"%Y-%m-%dT%H:%M:%S.%eZ\",%v\n", to_json, write_to_stderr},
    {"%v", to_journal, write_to_journal},
};

std::size_t format_of(LogFormat wanted) {
  if (wanted == LogFormat::json) return 1;
  return wanted == LogFormat::automatic && stderr_is_journal() ? 2 : 0;
}

/// spdlog numbers its levels in the same order, starting with trace.
spdlog::level::level_enum level_of(LogLevel level) noexcept {
  static_assert(spdlog::level::err - spdlog::level::debug ==
                static_cast<int>(LogLevel::error) - static_cast<int>(LogLevel::debug));
  return static_cast<spdlog::level::level_enum>(spdlog::level::debug + static_cast<int>(level));
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
  Sink(const Format& format, std::shared_ptr<Queue> queue)
      : base_sink(
            std::make_unique<spdlog::pattern_formatter>(format.pattern, spdlog::pattern_time_type::utc, "")),
        format_(format),
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
    const bool written = format_.write({text.data(), text.size()});
    if (!written) ++queue_->failed;
    return written;
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
  const std::shared_ptr<Queue> queue_;
};

Log::Log(const Clock& clock, const Logging& settings)
    : clock_(clock), queue_(std::make_shared<Queue>()), worker_(clock) {
  static_assert(std::size(kFormatTable) == kFormats);
  for (std::size_t i = 0; i < kFormats; ++i) {
    loggers_[i] = std::make_shared<spdlog::logger>("", std::make_shared<Sink>(kFormatTable[i], queue_));
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
  chosen_ = format_of(settings.format);
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
