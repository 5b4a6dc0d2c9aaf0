#pragma once

#include <initializer_list>
#include <memory>
#include <string_view>

#include "collectors/api/clock.hpp"
#include "collectors/api/mutex.hpp"
#include "config/config.hpp"
#include "daemon/log_format.hpp"

namespace gpumeter {

/// The daemon's log: one line an event, a message of fixed words and fields for what varies,
///   log.warn("device lost", {{"gpu", "0"}, {"uuid", info.uuid}});
/// Any thread. Nothing leaves as an exception; what cannot be logged is dropped. A call may block as long
/// as stderr or the journal does, so state changes are logged, not cycles.
class Log {
 public:
  using Fields = std::initializer_list<LogField>;

  /// `clock` must outlive the log. The journal is used where the settings say auto and stderr is its stream.
  Log(const Clock& clock, const config::Logging& settings);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  void debug(std::string_view message, Fields fields = {}) noexcept;
  void info(std::string_view message, Fields fields = {}) noexcept;
  void warn(std::string_view message, Fields fields = {}) noexcept;
  void error(std::string_view message, Fields fields = {}) noexcept;

  /// Takes on other settings, as a reload brings them.
  void configure(const config::Logging& settings) GPUMETER_EXCLUDES(mutex_);

 private:
  struct Output;

  void write(config::LogLevel level, std::string_view message, Fields fields) noexcept
      GPUMETER_EXCLUDES(mutex_);

  const Clock& clock_;
  Mutex mutex_;
  std::shared_ptr<const Output> output_ GPUMETER_GUARDED_BY(mutex_);
};

}  // namespace gpumeter
