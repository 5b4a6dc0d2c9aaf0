#include "daemon/job_settings.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <string>

#include "base/descriptor.hpp"

namespace gpumeter {
namespace {

jobs::Limits limits_of(const config::JobLimits& wanted) {
  jobs::Limits limits;
  limits.lines_per_second = wanted.lines_per_second;
  limits.burst_lines = wanted.lines_per_second;
  limits.series_per_run = wanted.series_per_run;
  limits.series_per_sender = std::max<std::size_t>(limits.series_per_sender, wanted.series_per_run);
  limits.series_per_user = wanted.series_per_user;
  limits.series = wanted.series;
  limits.retention = wanted.retention;
  return limits;
}

}  // namespace

jobs::Settings job_settings_of(const config::Config& config) {
  const config::Jobs& wanted = config.jobs;
  jobs::Settings settings;
  settings.procfs = config.paths.procfs;
  settings.device_labels = config.device_labels;
  settings.sockets = {wanted.socket, wanted.stream_socket,
                      static_cast<mode_t>(std::stoul(wanted.socket_mode, nullptr, 8))};
  for (std::string_view entry : wanted.mllog) {  // RUN=/absolute/path; RUN may contain =
    const std::size_t end = entry.find("=/");
    settings.logs.push_back({std::string(entry.substr(0, end)), std::string(entry.substr(end + 1))});
  }
  settings.live = {limits_of(config.job_limits), wanted.users};
  return settings;
}

std::vector<jobs::PassedSocket> job_sockets_of(const std::vector<systemd::PassedSocket>& passed) {
  using Kind = systemd::PassedSocket::Kind;
  std::vector<jobs::PassedSocket> sockets;
  for (const systemd::PassedSocket& socket : passed) {
    int type = socket.kind == Kind::datagram ? SOCK_DGRAM : 0;
    if (socket.kind == Kind::listening_stream) type = SOCK_STREAM;
    sockets.push_back({Descriptor(socket.fd), socket.name, socket.is_unix ? type : 0});
  }
  return sockets;
}

}  // namespace gpumeter
