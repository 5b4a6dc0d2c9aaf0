#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

/// What systemd and a service tell each other: messages (sd_notify(3)), sockets (sd_listen_fds(3)), the
/// journal.
///
/// Without $NOTIFY_SOCKET the functions notify_* send nothing and return false. Any thread; none of them
/// blocks for longer than sending one datagram.
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

/// A socket that systemd created and the caller owns.
struct PassedSocket {
  enum class Kind : std::uint8_t { listening_stream, datagram, other };

  int fd = -1;       ///< close-on-exec is set
  std::string name;  ///< FileDescriptorName= of the socket unit
  Kind kind = Kind::other;
  bool is_unix = false;
  bool operator==(const PassedSocket&) const = default;
};

/// FileDescriptorName= of gpumeter-jobs.socket. Sockets of any other name serve HTTP, including those of a
/// unit without FileDescriptorName= and of systemd-socket-activate(1).
inline constexpr const char* kJobsName = "jobs";

/// The sockets that socket activation (sd_listen_fds(3)) passed, by use.
struct PassedSockets {
  std::vector<PassedSocket> http;
  std::vector<PassedSocket> jobs;
};

/// Removes the sockets, if any, from the environment. Call it once, before other threads start.
Result<PassedSockets> take_passed_sockets();

/// Returns an Error if these sockets cannot serve HTTP: there is none, or one is not a listening stream
/// socket.
Result<Done> check_http(const std::vector<PassedSocket>& sockets);

/// Returns true if the descriptor is the stream that systemd connected to the journal and named in
/// $JOURNAL_STREAM ("device:inode"; null or empty: not under systemd). Returns false if the descriptor was
/// redirected later.
bool is_journal_stream(int fd, const char* journal_stream) noexcept;

/// Sends one entry of "NAME=value" fields to the journal by its native protocol. Returns false if the journal
/// rejects it. On a machine without a journal, the function sends nothing and returns true. Any thread.
bool send_to_journal(std::span<const std::string> fields);

}  // namespace gpumeter::systemd
