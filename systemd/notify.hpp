#pragma once

#include <chrono>
#include <optional>
#include <string_view>

/// The daemon's messages to systemd (sd_notify(3)). Without $NOTIFY_SOCKET each function sends nothing and
/// returns false. Any thread; no function blocks for longer than sending one datagram.
namespace gpumeter::systemd {

/// Reports that the service is up, or up again after notify_reloading(). `systemctl status` shows the line
/// `status`.
bool notify_ready(std::string_view status) noexcept;

bool notify_status(std::string_view status) noexcept;

/// Reports the start of a reload. `monotonic` is CLOCK_MONOTONIC now, which systemd 253 and later require
/// with Type=notify-reload.
bool notify_reloading(std::chrono::microseconds monotonic) noexcept;

bool notify_stopping() noexcept;

/// Sends the ping that systemd requires within each watchdog_interval().
bool notify_watchdog() noexcept;

/// Returns the unit's WatchdogSec; nullopt if systemd requires no pings from this process. Ping twice as
/// often.
std::optional<std::chrono::microseconds> watchdog_interval() noexcept;

}  // namespace gpumeter::systemd
