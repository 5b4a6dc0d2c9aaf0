#include "daemon/log/log.hpp"

#include <pthread.h>
#include <spdlog/async_logger.h>
#include <spdlog/details/thread_pool.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>

#include <iterator>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>

#include "daemon/log/output.hpp"

namespace gpumeter {
namespace {

// Room for the start of 500 devices with two lines each. spdlog allocates 400 bytes for each record.
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

std::size_t format_of(config::LogFormat wanted) {
  if (wanted == config::LogFormat::json) return 1;
  return wanted == config::LogFormat::automatic && stderr_is_journal() ? 2 : 0;
}

/// spdlog numbers its levels in the same order, starting with trace.
spdlog::level::level_enum level_of(config::LogLevel level) noexcept {
  static_assert(spdlog::level::err - spdlog::level::debug ==
                static_cast<int>(config::LogLevel::error) - static_cast<int>(config::LogLevel::debug));
  return static_cast<spdlog::level::level_enum>(spdlog::level::debug + static_cast<int>(level));
}

std::shared_ptr<spdlog::details::thread_pool> start_thread(
    std::function<void(spdlog::details::thread_pool*)> end) {
  const auto name_thread = [] { pthread_setname_np(pthread_self(), "log"); };
  try {
    return {new spdlog::details::thread_pool(kMostRecords, 1, name_thread), std::move(end)};
  } catch (const std::system_error&) {
    return nullptr;
  }
}

}  // namespace

struct Log::Progress {
  std::uint64_t dropped() const { return failed + (pool == nullptr ? 0 : pool->overrun_counter()); }

  std::atomic<std::uint64_t> logged{0};
  std::atomic<std::uint64_t> finished{0};  ///< records that were written or have failed
  std::atomic<std::uint64_t> failed{0};
  std::atomic<std::uint64_t> reported{0};        ///< the part of dropped() that the log has reported
  spdlog::details::thread_pool* pool = nullptr;  ///< outlives its thread and therefore every use of this
                                                 ///< pointer
  bool stalls = false;                           ///< true if the queue did not empty at the end
};

class Log::Sink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  Sink(const Format& format, std::shared_ptr<Progress> progress)
      : base_sink(
            std::make_unique<spdlog::pattern_formatter>(format.pattern, spdlog::pattern_time_type::utc, "")),
        format_(format),
        progress_(std::move(progress)) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    if (write(message)) report_gap(message.time);
    ++progress_->finished;
  }
  void flush_() override {}

 private:
  bool write(const spdlog::details::log_msg& message) {
    spdlog::memory_buf_t text;
    formatter_->format(message, text);
    const bool written = format_.write({text.data(), text.size()});
    if (!written) ++progress_->failed;
    return written;
  }

  // Reports only when the queue is empty, so that a slow reader receives records first.
  void report_gap(spdlog::log_clock::time_point now) {
    const std::uint64_t dropped = progress_->dropped();
    if (dropped == progress_->reported || (progress_->pool != nullptr && progress_->pool->queue_size() > 0))
      return;
    const LogField count{"records", std::to_string(dropped - progress_->reported)};
    const std::string text = format_.encode(
        {config::LogLevel::warn, "log records were dropped: they could not be written", {&count, 1}});
    if (write({now, {}, "", spdlog::level::warn, text})) progress_->reported = dropped;
  }

  const Format& format_;
  const std::shared_ptr<Progress> progress_;
};

Log::Log(const Clock& clock, const config::Logging& settings)
    : clock_(clock),
      progress_(std::make_shared<Progress>()),
      pool_(start_thread([progress = progress_](spdlog::details::thread_pool* pool) {
        if (!progress->stalls) delete pool;  // joins the thread, which then owns nothing else
      })) {
  static_assert(std::size(kFormatTable) == kFormats);
  progress_->pool = pool_.get();
  for (std::size_t i = 0; i < kFormats; ++i) {
    const auto sink = std::make_shared<Sink>(kFormatTable[i], progress_);
    if (pool_) {
      constexpr auto kPolicy = spdlog::async_overflow_policy::overrun_oldest;
      loggers_[i] = std::make_shared<spdlog::async_logger>("", sink, pool_, kPolicy);
    } else {
      loggers_[i] = std::make_shared<spdlog::logger>("", sink);
    }
    // spdlog's own handler would write a line in another format to stderr.
    loggers_[i]->set_error_handler([progress = progress_](const std::string&) {
      ++progress->failed;
      ++progress->finished;
    });
  }
  configure(settings);
}

Log::~Log() { progress_->stalls = !flush(kEnd); }

void Log::debug(std::string_view message, Fields fields) noexcept {
  write(config::LogLevel::debug, message, fields);
}
void Log::info(std::string_view message, Fields fields) noexcept {
  write(config::LogLevel::info, message, fields);
}
void Log::warn(std::string_view message, Fields fields) noexcept {
  write(config::LogLevel::warn, message, fields);
}
void Log::error(std::string_view message, Fields fields) noexcept {
  write(config::LogLevel::error, message, fields);
}

void Log::configure(const config::Logging& settings) {
  for (const auto& logger : loggers_) logger->set_level(level_of(settings.level));
  chosen_ = format_of(settings.format);
}

void Log::write(config::LogLevel level, std::string_view message, Fields fields) noexcept try {
  const std::size_t chosen = chosen_;
  if (!loggers_[chosen]->should_log(level_of(level))) return;
  const auto now = std::chrono::duration_cast<spdlog::log_clock::duration>(clock_.realtime());
  const std::string text = kFormatTable[chosen].encode({level, message, fields});
  ++progress_->logged;
  loggers_[chosen]->log(spdlog::log_clock::time_point(now), {}, level_of(level), text);
} catch (...) {
  ++progress_->failed;  // out of memory, before the record was queued
}

bool Log::flush(Nanoseconds at_most) {
  const Nanoseconds deadline = clock_.monotonic() + at_most;
  const std::uint64_t wanted = progress_->logged;
  const auto overrun = [this] { return pool_ ? pool_->overrun_counter() : 0; };
  while (progress_->finished + overrun() < wanted) {
    if (clock_.monotonic() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

std::uint64_t Log::dropped() const { return progress_->dropped(); }

}  // namespace gpumeter
