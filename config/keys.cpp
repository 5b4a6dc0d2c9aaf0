#include "config/keys.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "config/checks.hpp"

namespace gpumeter::config {
namespace {

constexpr bool kReloads = true;
constexpr bool kNeedsRestart = false;

template <auto Member>
struct MemberTraits;
template <class Section, class T, T Section::*kMember>
struct MemberTraits<kMember> {
  using Type = T;
};

/// Reads into a copy, so that a value that is refused changes nothing.
template <class T, auto kCheck>
Complaint read_checked(const Node& node, T& target) {
  T value = target;
  Complaint complaint = read(node, value);
  if constexpr (kCheck != nullptr) {
    if (!complaint) complaint = kCheck(value);
  }
  if (!complaint) target = std::move(value);
  return complaint;
}

/// The row of a key that is a member of a section; kCheck says what it must be beyond its type.
template <auto kSection, auto kMember, auto kCheck = nullptr>
constexpr Key row(std::string_view path, bool reloadable, std::string_view help) {
  using T = typename MemberTraits<kMember>::Type;
  return {path,
          reloadable,
          kTypeWords<T>,
          std::is_same_v<T, std::vector<std::string>>,
          [](const Node& node, Config& config) {
            return read_checked<T, kCheck>(node, config.*kSection.*kMember);
          },
          [](const Config& config) { return show(config.*kSection.*kMember); },
          help};
}

Complaint read_device_labels(const Node& node, Config& config) { return read(node, config.device_labels); }
std::string show_device_labels(const Config& config) { return show(config.device_labels); }

constexpr Key kKeys[] = {
    row<&Config::web, &Web::listen, check_addresses>(
        "web.listen", kNeedsRestart,
        "Listen addresses, each as host:port. `:10478` listens on all addresses."),
    row<&Config::web, &Web::config_file, check_no_web_config>(
        "web.config_file", kNeedsRestart,
        "Not supported in this version; must be empty. For TLS and users, use a reverse proxy."),
    row<&Config::web, &Web::telemetry_path, check_url_path>("web.telemetry_path", kNeedsRestart,
                                                            "Path of the metrics page."),
    row<&Config::web, &Web::max_requests>(
        "web.max_requests", kNeedsRestart,
        "Maximum number of concurrent scrapes. A further scrape ends the oldest one. 0: no limit."),
    row<&Config::sampling, &Sampling::fast, check_interval>(
        "sampling.fast", kReloads,
        "Sampling interval of utilisation, power, clocks, temperatures and throttling."),
    row<&Config::sampling, &Sampling::normal, check_interval>(
        "sampling.normal", kReloads, "Sampling interval of memory and fans; at least `fast`."),
    row<&Config::sampling, &Sampling::slow, check_interval>(
        "sampling.slow", kReloads,
        "Sampling interval of error counters, PCIe and limits; at least `normal`."),
    row<&Config::sampling, &Sampling::floor, check_interval>(
        "sampling.floor", kReloads,
        "Minimum of the sampling intervals. Reading a driver more often can slow down the jobs on the "
        "device."),
    Key{"device_labels", kNeedsRestart, kTypeWords<std::vector<DeviceLabel>>, true, read_device_labels,
        show_device_labels, "Labels of every device series, in addition to gpu and uuid."},
    row<&Config::devices, &Devices::forget>("devices.forget", kReloads,
                                            "How long a missing device keeps its `gpu_up 0`. Time in which "
                                            "the daemon does not run does not count."),
    row<&Config::devices, &Devices::names, check_device_names>(
        "devices.names", kReloads, "Names of devices, by uuid or PCI address, for the label `name`."),
    row<&Config::workloads, &Workloads::enabled>(
        "workloads.enabled", kNeedsRestart,
        "Export `gpu_workload_*`: who uses each device whose driver lists its processes."),
    row<&Config::workloads, &Workloads::processes>(
        "workloads.processes", kNeedsRestart,
        "Export `gpu_process_*`, series for each process. They come and go with the processes."),
    row<&Config::paths, &Paths::sysfs, check_absolute_path>("paths.sysfs", kNeedsRestart,
                                                            "Mount point of sysfs."),
    row<&Config::paths, &Paths::procfs, check_absolute_path>("paths.procfs", kNeedsRestart,
                                                             "Mount point of procfs."),
    row<&Config::paths, &Paths::state, check_absolute_path>(
        "paths.state", kNeedsRestart,
        "Folder of the state that survives a restart: the index of each device."),
    row<&Config::log, &Logging::level>("log.level", kReloads, "Lowest level that is logged."),
    row<&Config::log, &Logging::format>(
        "log.format", kReloads, "auto: the journal if systemd runs the daemon, otherwise logfmt on stderr."),
    row<&Config::jobs, &Jobs::enabled>("jobs.enabled", kNeedsRestart,
                                       "Accept messages from jobs (the ml_* families)."),
    row<&Config::jobs, &Jobs::socket, check_socket_path>(
        "jobs.socket", kNeedsRestart,
        "Unix datagram socket for DogStatsD lines, unless systemd passes one; `\"\"`: none."),
    row<&Config::jobs, &Jobs::stream_socket, check_socket_path>(
        "jobs.stream_socket", kNeedsRestart,
        "Unix stream socket for the same lines, unless systemd passes one; `\"\"`: none."),
    row<&Config::jobs, &Jobs::socket_mode, check_socket_mode>(
        "jobs.socket_mode", kNeedsRestart,
        "Permissions of both sockets, in octal; write permission allows sending. Not used for systemd's "
        "sockets."),
    row<&Config::jobs, &Jobs::users, check_users>(
        "jobs.users", kReloads,
        "Users who may send, by name or uid, also over systemd's sockets. Empty: all. Names must exist."),
    row<&Config::jobs, &Jobs::mllog, check_mllog_files>(
        "jobs.mllog", kNeedsRestart, "Files or pipes with MLPerf log lines, each as `RUN=/absolute/path`."),
    row<&Config::job_limits, &JobLimits::lines_per_second, check_not_zero>(
        "jobs.limits.lines_per_second", kReloads, "Maximum lines per second from the jobs of one user."),
    row<&Config::job_limits, &JobLimits::series_per_run, check_not_zero>(
        "jobs.limits.series_per_run", kReloads, "Maximum series of one run."),
    row<&Config::job_limits, &JobLimits::series_per_user, check_not_zero>(
        "jobs.limits.series_per_user", kReloads,
        "Maximum series of all runs of one user. Values beyond it are summed under the run `_other`."),
    row<&Config::job_limits, &JobLimits::series, check_not_zero>("jobs.limits.series", kReloads,
                                                                 "Maximum series of all runs of all users."),
    row<&Config::job_limits, &JobLimits::retention, check_retention>(
        "jobs.limits.retention", kReloads, "How long a run stays on the page after its last process ended."),
};

}  // namespace

std::span<const Key> keys() noexcept { return kKeys; }

const Key* find_key(std::string_view path) noexcept {
  const auto* key =
      std::find_if(std::begin(kKeys), std::end(kKeys), [path](const Key& k) { return k.path == path; });
  return key == std::end(kKeys) ? nullptr : key;
}

Complaint set(Config& config, std::string_view path, std::span<const std::string> values) {
  const Key* key = find_key(path);
  if (key == nullptr) return "is not a key of the configuration";
  std::vector<Node> nodes;
  for (const std::string& value : values) {
    Node& node = nodes.emplace_back();
    node.kind = Node::Kind::scalar;
    node.text = value;
  }
  if (!key->is_list) return nodes.size() == 1 ? key->read(nodes.front(), config) : "must be one value";
  Node list;
  list.kind = Node::Kind::sequence;
  list.children = std::move(nodes);
  return key->read(list, config);
}

std::vector<std::string> restart_needed(const Config& running, const Config& wanted) {
  std::vector<std::string> paths;
  for (const Key& key : kKeys) {
    if (!key.reloadable && key.show(running) != key.show(wanted)) paths.emplace_back(key.path);
  }
  return paths;
}

}  // namespace gpumeter::config
