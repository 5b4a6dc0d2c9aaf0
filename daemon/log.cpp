#include "daemon/log.hpp"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <unistd.h>

#include <cstdlib>

#include "daemon/journal_sink.hpp"
#include "systemd/journal.hpp"

namespace gpumeter {
namespace {

enum class Encoding { logfmt, json, journal };

Encoding encoding_of(config::LogFormat format) {
  if (format == config::LogFormat::json) return Encoding::json;
  const bool journal = format == config::LogFormat::automatic &&
                       systemd::is_journal_stream(STDERR_FILENO, std::getenv("JOURNAL_STREAM"));
  return journal ? Encoding::journal : Encoding::logfmt;
}

std::string encoded(const LogRecord& record, Encoding encoding) {
  switch (encoding) {
    case Encoding::json:
      return to_json(record);
    case Encoding::journal:
      return pack_journal_entry(to_journal(record));
    case Encoding::logfmt:
      break;
  }
  return to_logfmt(record);
}

spdlog::level::level_enum level_of(config::LogLevel level) noexcept {
  constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::debug, spdlog::level::info,
                                                   spdlog::level::warn, spdlog::level::err};
  return kLevels[static_cast<std::size_t>(level)];
}

spdlog::sink_ptr sink_of(Encoding encoding) {
  if (encoding == Encoding::journal) return make_journal_sink();
  return std::make_shared<spdlog::sinks::stderr_sink_mt>();
}

}  // namespace

/// One sink and what it is fed: they change together.
struct Log::Output {
  explicit Output(const config::Logging& settings)
      : encoding(encoding_of(settings.format)), logger("gpumeter", sink_of(encoding)) {
    // The lines are whole before spdlog sees them: it has no fields.
    logger.set_pattern("%v");
    logger.set_level(level_of(settings.level));
    // spdlog's own handler would write a line of another format to stderr.
    logger.set_error_handler([](const std::string&) {});
  }

  Encoding encoding;
  mutable spdlog::logger logger;  // thread-safe, though its log() is not const
};

Log::Log(const Clock& clock, const config::Logging& settings)
    : clock_(clock), output_(std::make_shared<const Output>(settings)) {}

Log::~Log() = default;

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
  auto output = std::make_shared<const Output>(settings);
  const MutexLock lock(mutex_);
  output_ = std::move(output);
}

void Log::write(config::LogLevel level, std::string_view message, Fields fields) noexcept try {
  std::shared_ptr<const Output> output;
  {
    const MutexLock lock(mutex_);
    output = output_;
  }
  if (!output->logger.should_log(level_of(level))) return;
  const std::string line = encoded({clock_.realtime(), level, message, fields}, output->encoding);
  output->logger.log(level_of(level), spdlog::string_view_t(line));
} catch (...) {
  // Out of memory, most likely: there is nobody to tell.
}

}  // namespace gpumeter
