#include "daemon/log/output.hpp"

#include <spdlog/logger.h>
#include <unistd.h>

#include <cstdlib>

#include "daemon/log/sinks.hpp"
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

spdlog::level::level_enum level_of(config::LogLevel level) noexcept {
  constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::debug, spdlog::level::info,
                                                   spdlog::level::warn, spdlog::level::err};
  return kLevels[static_cast<std::size_t>(level)];
}

}  // namespace

/// spdlog has no fields, so it gets whole lines.
struct LogOutput::Logger {
  explicit Logger(const config::Logging& settings)
      : encoding(encoding_of(settings.format)),
        spd("gpumeter", encoding == Encoding::journal ? make_journal_sink() : make_stderr_sink()) {
    spd.set_level(level_of(settings.level));
    // spdlog's own handler would write a line of another format to stderr.
    spd.set_error_handler([this](const std::string&) { failed = true; });
  }

  const Encoding encoding;
  spdlog::logger spd;
  bool failed = false;  // of who writes
};

LogOutput::LogOutput(const config::Logging& settings) : logger_(std::make_unique<Logger>(settings)) {}

LogOutput::~LogOutput() = default;

bool LogOutput::takes(config::LogLevel level) const { return logger_->spd.should_log(level_of(level)); }

std::string LogOutput::encoded(const LogRecord& record) const {
  switch (logger_->encoding) {
    case Encoding::json:
      return to_json(record);
    case Encoding::journal:
      return pack_journal_entry(to_journal(record));
    case Encoding::logfmt:
      break;
  }
  return to_logfmt(record);
}

bool LogOutput::write(config::LogLevel level, const std::string& text) const {
  logger_->failed = false;
  logger_->spd.log(level_of(level), spdlog::string_view_t(text));
  return !logger_->failed;
}

}  // namespace gpumeter
