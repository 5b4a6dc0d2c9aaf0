#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.hpp"
#include "collectors/jobs/model/shared.hpp"

namespace gpumeter::jobs {

/// Where jobs send to.
struct SocketSettings {
  std::string datagram;  ///< a path; empty: none
  std::string stream;    ///< a path; empty: none
  mode_t mode = 0666;
};

/// A log of MLPerf.
struct LogSettings {
  std::string run;
  std::string path;
};

/// What a reload may change.
struct LiveSettings {
  Limits limits;
  std::vector<std::string> users;  ///< names or uids of those who may send; empty: everybody
};

struct Settings {
  std::string procfs = "/proc";
  SocketSettings sockets;
  std::vector<LogSettings> logs;
  LiveSettings live;
};

/// A socket that the service manager made.
struct PassedSocket {
  Descriptor socket;
  std::string name;
  int type = 0;  ///< SOCK_DGRAM, or SOCK_STREAM if it listens; 0: no Unix socket, or of another type
};

/// A record for the log: a message of fixed words, its subject, and the cause.
struct Notice {
  std::string_view message;
  std::string path = {};
  std::string error = {};
};

/// Logs changes of state, never single messages. Any thread.
using Say = std::function<void(const Notice&)>;

}  // namespace gpumeter::jobs
