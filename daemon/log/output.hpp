#pragma once

#include <memory>
#include <string>

#include "config/config.hpp"
#include "daemon/log/format.hpp"

namespace gpumeter {

/// Where log records go and in which format: stderr as logfmt or JSON, or the journal.
class LogOutput {
 public:
  /// The journal is used if the settings say auto and stderr is its stream. Does not block.
  explicit LogOutput(const config::Logging& settings);
  ~LogOutput();
  LogOutput(const LogOutput&) = delete;
  LogOutput& operator=(const LogOutput&) = delete;

  /// Whether the settings' level lets records of `level` through. Any thread.
  bool takes(config::LogLevel level) const;

  /// The record as text for write(). Any thread.
  std::string encoded(const LogRecord& record) const;

  /// Writes an encoded record; blocks for as long as its reader does not read. False: the record is lost.
  /// One thread at a time.
  bool write(config::LogLevel level, const std::string& text) const;

 private:
  struct Logger;
  const std::unique_ptr<Logger> logger_;
};

}  // namespace gpumeter
