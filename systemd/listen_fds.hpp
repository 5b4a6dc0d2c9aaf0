#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace gpumeter::systemd {

/// A socket that systemd made and now belongs to the caller.
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

/// What socket activation (sd_listen_fds(3)) passed, by what it is for.
struct PassedSockets {
  std::vector<PassedSocket> http;
  std::vector<PassedSocket> jobs;
};

/// Takes them out of the environment: call it once, before there are threads. In words what is wrong where
/// the environment makes no sense; none at all is fine.
std::variant<PassedSockets, std::string> take_passed_sockets();

/// Why HTTP cannot be served on these: there are none, or one is no listening stream socket. Empty: it can.
std::string http_complaint(const std::vector<PassedSocket>& sockets);

}  // namespace gpumeter::systemd
