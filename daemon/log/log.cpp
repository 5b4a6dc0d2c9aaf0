#include "daemon/log/log.hpp"

#include <utility>

namespace gpumeter {

Log::Log(const Clock& clock, const config::Logging& settings)
    : clock_(clock), queue_(clock), output_(std::make_shared<const LogOutput>(settings)) {}

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
  auto output = std::make_shared<const LogOutput>(settings);
  const MutexLock lock(mutex_);
  std::swap(output_, output);
}

void Log::write(config::LogLevel level, std::string_view message, Fields fields) noexcept try {
  std::shared_ptr<const LogOutput> output;
  {
    const MutexLock lock(mutex_);
    output = output_;
  }
  if (!output->takes(level)) return;
  const Nanoseconds now = clock_.realtime();
  std::string text = output->encoded({now, level, message, fields});
  queue_.put({std::move(output), level, now, std::move(text)});
} catch (...) {
  // Out of memory, most likely: there is nobody to tell.
}

}  // namespace gpumeter
