#include "collectors/jobs/intake/settings.hpp"

#include <algorithm>
#include <cstdio>
#include <set>

namespace gpumeter::jobs {

using options::check_socket_path;
using options::check_users;
using options::checked;
using options::Complaint;
using options::Option;
using options::option;
using options::Places;
using options::printable;
using options::Problems;
using options::Reload;

Complaint parse_option(const std::string& text, SocketMode& mode) {
  const bool octal =
      !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '7'; });
  const bool fits = text.size() == 3 || (text.size() == 4 && text.front() == '0');
  if (!octal || !fits) {
    return "must be permissions in octal, such as \"0666\" or \"0660\", not \"" + printable(text) + "\"";
  }
  mode.bits = static_cast<mode_t>(std::stoul(text, nullptr, 8));
  return std::nullopt;
}

std::string text_of(const SocketMode& mode) {
  char text[8];  // "0666"; options accept at most 0777
  std::snprintf(text, sizeof text, "%04o", mode.bits & 07777U);
  return text;
}

Complaint parse_option(const std::string& text, LogSettings& log) {
  const std::size_t end = text.find("=/");  // RUN may contain =
  if (end == std::string::npos || end == 0) {
    return "must be RUN=/absolute/path, such as \"bert=/var/log/bert/result_0.txt\", not \"" +
           printable(text) + "\"";
  }
  log = {text.substr(0, end), text.substr(end + 1)};
  return std::nullopt;
}

std::string text_of(const LogSettings& log) { return log.run + "=" + log.path; }

Complaint check_not_zero(const unsigned& number) {
  if (number > 0) return std::nullopt;
  return "must be at least 1; set jobs.enabled to false to ignore all jobs";
}

Complaint check_retention(const Duration& retention) {
  // Two scrapes must see a run's last values. The upper limit keeps at most one day of ended runs on the
  // page.
  if (retention >= std::chrono::seconds(10) && retention <= std::chrono::hours(24)) return std::nullopt;
  return "must be from 10s to 24h";
}

namespace {

Complaint check_logs(const std::vector<LogSettings>& logs) {
  std::set<std::string> seen;
  for (const LogSettings& log : logs) {
    if (seen.insert(log.path).second) continue;
    return "must list each file once, not \"" + printable(log.path) + "\" twice";
  }
  return std::nullopt;
}

void check_sockets(const Settings& settings, const Places& places, Problems& problems) {
  const SocketSettings& sockets = settings.sockets;
  if (sockets.datagram.empty() || sockets.datagram != sockets.stream) return;
  const std::string stream = "jobs.stream_socket";
  problems.push_back(
      places.problem(places.line_of(stream) == 0 ? "jobs.socket" : stream, 0,
                     "must not be the path of the other socket, \"" + printable(sockets.stream) + "\""));
}

// One row an option.
// clang-format off
constexpr Option kOptions[] = {
    option<&Settings::enabled>("enabled", Reload::restart, "Accept messages from jobs (the ml_* families)."),
    option<&Settings::sockets, &SocketSettings::datagram>("socket", Reload::restart, "Unix datagram socket for DogStatsD lines, unless systemd passes one; `\"\"`: none.", checked<check_socket_path>),
    option<&Settings::sockets, &SocketSettings::stream>("stream_socket", Reload::restart, "Unix stream socket for the same lines, unless systemd passes one; `\"\"`: none.", checked<check_socket_path>),
    option<&Settings::sockets, &SocketSettings::mode>("socket_mode", Reload::restart, "Permissions of both sockets, in octal; write permission allows sending. Not used for systemd's sockets."),
    option<&Settings::users>("users", Reload::applies, "Users who may send, by name or uid, also over systemd's sockets. Empty: all. Names must exist.", checked<check_users>),
    option<&Settings::logs>("mllog", Reload::restart, "Files or pipes with MLPerf log lines, each as `RUN=/absolute/path`.", checked<check_logs>),
};
constexpr Option kLimits[] = {
    option<&Limits::lines_per_second>("lines_per_second", Reload::applies, "Maximum lines per second from the jobs of one user. A packed line counts once for each of its values.", checked<check_not_zero>),
    option<&Limits::series_per_run>("series_per_run", Reload::applies, "Maximum series of one run.", checked<check_not_zero>),
    option<&Limits::series_per_user>("series_per_user", Reload::applies, "Maximum series of all runs of one user. Values beyond it are summed under the run `_other`.", checked<check_not_zero>),
    option<&Limits::series>("series", Reload::applies, "Maximum series of all runs of all users.", checked<check_not_zero>),
    option<&Limits::retention>("retention", Reload::applies, "How long a run stays on the page after its last process ended.", checked<check_retention>),
};
// clang-format on

}  // namespace

constinit const options::Section kSection = options::section<check_sockets>("jobs", kOptions);
constinit const options::Section kLimitsSection = options::section("jobs.limits", kLimits);

}  // namespace gpumeter::jobs
