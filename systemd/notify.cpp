#include "systemd/notify.hpp"

#include <systemd/sd-daemon.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <string>

namespace gpumeter::systemd {
namespace {

// Later calls read the environment again.
constexpr int kKeepEnvironment = 0;

bool send(const char* message) noexcept { return sd_notify(kKeepEnvironment, message) > 0; }

/// Replaces line breaks in the status, because a line break would start another assignment.
bool send(std::string message, std::string_view status) noexcept try {
  message += "STATUS=";
  message += status;
  std::replace(message.end() - static_cast<std::ptrdiff_t>(status.size()), message.end(), '\n', ' ');
  return send(message.c_str());
} catch (const std::exception&) {
  return false;
}

}  // namespace

bool notify_ready(std::string_view status) noexcept { return send("READY=1\n", status); }

bool notify_status(std::string_view status) noexcept { return send("", status); }

bool notify_reloading(std::chrono::microseconds monotonic) noexcept {
  return sd_notifyf(kKeepEnvironment, "RELOADING=1\nMONOTONIC_USEC=%lld",
                    static_cast<long long>(monotonic.count())) > 0;
}

bool notify_stopping() noexcept { return send("STOPPING=1"); }

bool notify_watchdog() noexcept { return send("WATCHDOG=1"); }

std::optional<std::chrono::microseconds> watchdog_interval() noexcept {
  std::uint64_t microseconds = 0;
  if (sd_watchdog_enabled(kKeepEnvironment, &microseconds) <= 0) return std::nullopt;
  return std::chrono::microseconds(microseconds);
}

}  // namespace gpumeter::systemd
