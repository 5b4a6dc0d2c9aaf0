#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.hpp"
#include "base/options.hpp"
#include "collectors/jobs/model/run_model.hpp"

namespace gpumeter::jobs {

/// The permissions of a socket.
struct SocketMode {
  mode_t bits = 0666;
  bool operator==(const SocketMode&) const = default;
};

/// The sockets that jobs send to, unless systemd passes some.
struct SocketSettings {
  std::string datagram = "/run/gpumeter/jobs.sock";       ///< empty: none
  std::string stream = "/run/gpumeter/jobs-stream.sock";  ///< empty: none
  SocketMode mode;                                        ///< of both
  bool operator==(const SocketSettings&) const = default;
};

/// An MLPerf log.
struct LogSettings {
  std::string run;
  std::string path;
  bool operator==(const LogSettings&) const = default;
};

/// The sources of the jobs' messages about their runs.
struct Settings {
  bool enabled = true;
  SocketSettings sockets;
  std::vector<LogSettings> logs;
  std::vector<std::string>
      users;  ///< names or uids of admitted users; empty: everybody. A reload may change it
  bool operator==(const Settings&) const = default;
};

/// `jobs` and `jobs.limits` in the configuration. The second one's settings are Limits.
extern const options::Section kSection;
extern const options::Section kLimitsSection;

/// Checks of options that profiles share.
options::Complaint check_not_zero(const unsigned& number);
options::Complaint check_retention(const Duration& retention);

/// Settings that a reload may change.
struct LiveSettings {
  Limits limits;
  std::vector<std::string> users;  ///< Settings::users
};

/// A socket that the service manager created.
struct PassedSocket {
  Descriptor socket;
  std::string name;
  int type = 0;  ///< SOCK_DGRAM, or SOCK_STREAM if it listens; 0: not a Unix socket, or of another type
};

/// A log record: a constant message, its subject, and the cause.
struct Notice {
  std::string_view message;
  std::string path = {};
  std::string error = {};
};

/// Logs changes of state, never single messages. Any thread.
using Say = std::function<void(const Notice&)>;

}  // namespace gpumeter::jobs
