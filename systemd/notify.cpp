#include "systemd/notify.hpp"

// Otherwise the macros add the source location of this call to every entry.
#define SD_JOURNAL_SUPPRESS_LOCATION

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-journal.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.hpp"

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

constexpr int kListening = 1;
constexpr int kEither = -1;

/// Returns the names of the passed descriptors. The caller of sd_listen_fds_with_names() must free its array
/// of C strings.
std::vector<std::string> take_names(int& count) {
  char** names = nullptr;
  constexpr int kUnsetEnvironment = 1;
  count = sd_listen_fds_with_names(kUnsetEnvironment, &names);
  std::vector<std::string> result;
  for (int i = 0; i < count && names != nullptr; ++i) {
    result.emplace_back(names[i]);
    std::free(names[i]);
  }
  std::free(names);
  return result;
}

PassedSocket::Kind kind_of(int fd) {
  if (sd_is_socket(fd, AF_UNSPEC, SOCK_STREAM, kListening) > 0) return PassedSocket::Kind::listening_stream;
  if (sd_is_socket(fd, AF_UNSPEC, SOCK_DGRAM, kEither) > 0) return PassedSocket::Kind::datagram;
  return PassedSocket::Kind::other;
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

Result<PassedSockets> take_passed_sockets() {
  int count = 0;
  const std::vector<std::string> names = take_names(count);
  if (count < 0) return Error(std::string("socket activation: ") + std::strerror(-count));
  PassedSockets sockets;
  int fd = SD_LISTEN_FDS_START;
  for (const std::string& name : names) {
    const bool is_unix = sd_is_socket(fd, AF_UNIX, 0, kEither) > 0;
    (name == kJobsName ? sockets.jobs : sockets.http).push_back({fd, name, kind_of(fd), is_unix});
    ++fd;
  }
  return sockets;
}

Result<Done> check_http(const std::vector<PassedSocket>& sockets) {
  if (sockets.empty()) return Error("no socket activation file descriptors found");
  for (const PassedSocket& socket : sockets) {
    if (socket.kind == PassedSocket::Kind::listening_stream) continue;
    return Error("socket activation file descriptor " + std::to_string(socket.fd) + " (" + socket.name +
                 ") is not a listening stream socket");
  }
  return Done{};
}

bool is_journal_stream(int fd, const char* journal_stream) noexcept {
  if (journal_stream == nullptr) return false;
  std::string_view text = journal_stream;
  const auto device = parse_number<std::uint64_t>(take_until(text, ':'));
  const auto inode = parse_number<std::uint64_t>(text);
  struct stat status {};
  return device && inode && fstat(fd, &status) == 0 && status.st_dev == *device && status.st_ino == *inode;
}

bool send_to_journal(std::span<const std::string> fields) {
  std::vector<iovec> parts;
  parts.reserve(fields.size());
  for (const std::string& field : fields) {
    // sendmsg() only reads the memory of an iovec.
    parts.push_back({const_cast<char*>(field.data()), field.size()});
  }
  return sd_journal_sendv(parts.data(), static_cast<int>(parts.size())) >= 0;
}

}  // namespace gpumeter::systemd
