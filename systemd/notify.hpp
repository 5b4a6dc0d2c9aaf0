#pragma once

#include <chrono>
#include <optional>
#include <string_view>

/// What the daemon tells systemd (sd_notify(3)). Without $NOTIFY_SOCKET nothing is sent and all of it
/// returns false. Any thread; none blocks for longer than one datagram takes.
namespace gpumeter::systemd {

/// Up, or up again after notify_reloading(). `status` is the line that `systemctl status` shows.
bool notify_ready(std::string_view status) noexcept;

bool notify_status(std::string_view status) noexcept;

/// A reload begins; `monotonic` is CLOCK_MONOTONIC now, without which systemd 253 and later with
/// Type=notify-reload does not take the message.
bool notify_reloading(std::chrono::microseconds monotonic) noexcept;

bool notify_stopping() noexcept;

/// The ping that systemd wants within each watchdog_interval().
bool notify_watchdog() noexcept;

/// The unit's WatchdogSec; nullopt: systemd does not wait for pings of this process. Ping twice as often.
std::optional<std::chrono::microseconds> watchdog_interval() noexcept;

}  // namespace gpumeter::systemd
