#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.hpp"
#include "base/device_labels.hpp"
#include "collectors/jobs/model/shared.hpp"

namespace gpumeter::jobs {

/// The sockets that jobs send to.
struct SocketSettings {
  std::string datagram;  ///< a path; empty: none
  std::string stream;    ///< a path; empty: none
  mode_t mode = 0666;
};

/// An MLPerf log.
struct LogSettings {
  std::string run;
  std::string path;
};

/// Settings that a reload may change.
struct LiveSettings {
  Limits limits;
  std::vector<std::string> users;  ///< names or uids of admitted users; empty: everybody
};

struct Settings {
  std::string procfs = "/proc";
  std::string subuids = "/etc/subuid";  ///< see UserOwners
  SocketSettings sockets;
  std::vector<LogSettings> logs;
  DeviceLabels device_labels;  ///< of the results of benchmarks
  LiveSettings live;
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
