#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace gpumeter::systemd {

/// A socket that systemd made and the caller owns.
struct PassedSocket {
  enum class Kind : std::uint8_t { listening_stream, datagram, other };

  int fd = -1;       ///< close-on-exec is set
  std::string name;  ///< FileDescriptorName= of the socket unit
  Kind kind = Kind::other;
  bool is_unix = false;
  bool operator==(const PassedSocket&) const = default;
};

/// FileDescriptorName= of gpumeter-jobs.socket. Sockets of any other name are HTTP's, so that a unit without
/// FileDescriptorName= and systemd-socket-activate(1) serve it.
inline constexpr const char* kJobsName = "jobs";

/// The sockets that socket activation (sd_listen_fds(3)) passed, by their use.
struct PassedSockets {
  std::vector<PassedSocket> http;
  std::vector<PassedSocket> jobs;
};

/// Takes the sockets, if any, out of the environment: call it once, before other threads start.
Result<PassedSockets> take_passed_sockets();

/// An Error if HTTP cannot be served on these sockets: there is none, or one is not a listening stream
/// socket.
Result<Done> check_http(const std::vector<PassedSocket>& sockets);

}  // namespace gpumeter::systemd
