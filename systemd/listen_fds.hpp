#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace gpumeter::systemd {

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

}  // namespace gpumeter::systemd
