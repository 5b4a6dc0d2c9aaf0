#include "config/keys.hpp"

#include <algorithm>

#include "config/checks.hpp"
#include "config/fixed_key.hpp"

namespace gpumeter::config {
namespace {

constexpr bool kReloads = true;
constexpr bool kNeedsRestart = false;

/// `fixed` must outlive the key.
Key key_of(const FixedKey& fixed) {
  return {std::string(fixed.path),
          fixed.reloadable,
          fixed.type->words(),
          fixed.type->is_list,
          fixed.help,
          [&fixed](const Node& node, Config& config) {
            return fixed.type->read(node, fixed.check, const_cast<void*>(fixed.place(config)));
          },
          [&fixed](const Config& config) { return fixed.type->show(fixed.place(config)); }};
}

Key enabled_key(const std::string& collector) {
  return {"collectors." + collector + ".enabled",
          kReloads,
          type_words(Enabled{}),
          false,
          "auto: enabled if the collector is enabled by default.",
          [collector](const Node& node, Config& config) {
            return read(node, config.collectors[collector].enabled);
          },
          [collector](const Config& config) { return show(config.collectors.at(collector).enabled); }};
}

Key option_key(const std::string& collector, const OptionSchema& option) {
  const bool is_list = option.kind == OptionSchema::Kind::list;
  const auto values = [collector, name = std::string(option.name)](auto& config) -> auto& {
    return config.collectors.at(collector).options.at(name);
  };
  return {"collectors." + collector + "." + std::string(option.name),
          kReloads,
          std::string(type_words(option.kind)),
          is_list,
          option.help,
          [kind = option.kind, values](const Node& node, Config& config) {
            return read(node, kind, values(config));
          },
          [is_list, values](const Config& config) {
            return is_list ? show(values(config)) : show(values(config).front());
          }};
}

// One row a key.
// clang-format off
constexpr FixedKey kFixedKeys[] = {
    row<&Config::web, &Web::listen>("web.listen", kNeedsRestart, "Listen addresses, each as host:port or unix:/path. `:10478` listens on all addresses. Not used while systemd passes a socket, as in the package: change gpumeter.socket instead. Every user of the machine may connect to a Unix socket.", check_addresses),
    row<&Config::web, &Web::config_file>("web.config_file", kNeedsRestart, "File with TLS, users, headers and a rate limit, in the format of Prometheus' exporters (docs/web-configuration.md). Changes of its content need no restart. Empty: none.", check_optional_path),
    row<&Config::web, &Web::telemetry_path>("web.telemetry_path", kNeedsRestart, "Path of the metrics page.", check_url_path),
    row<&Config::web, &Web::max_requests>("web.max_requests", kNeedsRestart, "Maximum number of concurrent scrapes. A further scrape ends the oldest one that takes long, or is answered 503. 0: no limit."),
    row<&Config::metrics, &Metrics::detail>("metrics.detail", kReloads, "Series of the metrics page. standard: those that the shipped rules, alerts and dashboards read, and counters of errors from the first error on (docs/operations.md, \"The price of a series\"). full: all. All other pages have all series."),
    row<&Config::metrics, &Metrics::include>("metrics.include", kReloads, "Series that the metrics page has in any case, as `NAME` or `NAME{label=\"VALUE\"}`; `*` is any text: `gpu_xid_errors_total{xid=\"31\"}`, `gpu_pcie_*`."),
    row<&Config::metrics, &Metrics::exclude>("metrics.exclude", kReloads, "Series that the metrics page omits, unless `include` has them: `gpu_throttle_*`, `gpu_clock_hertz{clock=\"video\"}`. Alerts and panels that read them show nothing."),
    row<&Config::sampling, &Sampling::fast>("sampling.fast", kReloads, "Sampling interval of utilisation, power, clocks, temperatures and throttling.", check_interval),
    row<&Config::sampling, &Sampling::normal>("sampling.normal", kReloads, "Sampling interval of memory and fans; at least `fast`.", check_interval),
    row<&Config::sampling, &Sampling::slow>("sampling.slow", kReloads, "Sampling interval of error counters, PCIe and limits; at least `normal`.", check_interval),
    row<&Config::sampling, &Sampling::floor>("sampling.floor", kReloads, "Minimum of the sampling intervals. Reading a driver more often can slow down the jobs on the device.", check_interval),
    row<&Config::device_labels>("device_labels", kNeedsRestart, "Labels of every device series, in addition to gpu and uuid."),
    row<&Config::devices, &Devices::expected>("devices.expected", kReloads, "Number of GPUs that the machine should have, such as `8`, or by vendor, such as `{nvidia: 8}`, for the alert on missing ones. `{}`: no alert."),
    row<&Config::devices, &Devices::forget>("devices.forget", kReloads, "How long a missing device keeps its `gpu_up 0`. never: until `gpumeter forget UUID`. Time in which the daemon does not run does not count."),
    row<&Config::devices, &Devices::names>("devices.names", kReloads, "Names of devices, by uuid or PCI address, for the label `name`.", check_device_names),
    row<&Config::workloads, &Workloads::enabled>("workloads.enabled", kNeedsRestart, "Export `gpu_workload_*`: who uses each device whose driver lists its processes."),
    row<&Config::workloads, &Workloads::processes>("workloads.processes", kNeedsRestart, "Export `gpu_process_*`, series for each process. They come and go with the processes."),
    row<&Config::allocations, &Allocations::idle_percent>("allocations.idle_percent", kNeedsRestart, "Busy share in percent below which an allocated GPU counts as idle (`gpu_allocated_idle_seconds_total`).", check_percent),
    row<&Config::allocations, &Allocations::slurm>("allocations.slurm", kNeedsRestart, "Folder to which Slurm's prolog writes the jobs of this machine (docs/slurm.md); `\"\"`: none.", check_optional_path),
    row<&Config::allocations, &Allocations::slurm_gpus>("allocations.slurm_gpus", kNeedsRestart, "File with slurmd's list of GPUs: the output of `slurmd -G`, or gres.conf. Required if slurmd does not know the GPUs' uuids and its order differs from that of the PCI addresses. Empty: none.", check_optional_path),
    row<&Config::allocations, &Allocations::manual>("allocations.manual", kNeedsRestart, "Folder of the allocations that `gpumeter allocate` made; `\"\"`: none.", check_optional_path),
    row<&Config::allocations, &Allocations::held>("allocations.held", kNeedsRestart, "Folder in which `gpumeter-held` records the GPUs that the control groups of Slurm jobs permit (docs/slurm.md); `\"\"`: none.", check_optional_path),
    row<&Config::kubernetes, &Kubernetes::enabled>("kubernetes.enabled", kNeedsRestart, "Name pods from local sources of the node. auto: if any of them is there; true: sources that are missing are errors."),
    row<&Config::kubernetes, &Kubernetes::pods_socket>("kubernetes.pods_socket", kNeedsRestart, "Socket of the kubelet's Pods API (Kubernetes 1.37, in 1.35 and 1.36 by feature gate): names, owners, labels and devices of pods. Empty: not used.", check_socket_path),
    row<&Config::kubernetes, &Kubernetes::pod_resources_socket>("kubernetes.pod_resources_socket", kNeedsRestart, "Socket of the kubelet's pod-resources: devices of pods, if the Pods API does not list them. Empty: not used.", check_socket_path),
    row<&Config::kubernetes, &Kubernetes::log_path>("kubernetes.log_path", kNeedsRestart, "Folder with `pods` and `containers`, whose file names are the names of pods, if the Pods API is missing. No log is read. Empty: not used.", check_optional_path),
    row<&Config::kubernetes, &Kubernetes::cri_socket>("kubernetes.cri_socket", kNeedsRestart, "Socket of the container runtime, in place of `log_path`. Whoever may open it is root on the node. Empty: not used.", check_socket_path),
    row<&Config::kubernetes, &Kubernetes::labels>("kubernetes.labels", kNeedsRestart, "Labels of pods that are exported, such as `[team, app.kubernetes.io/name]`: `k8s_label_team`, `k8s_label_app_kubernetes_io_name`. Requires the Pods API.", check_pod_labels),
    row<&Config::nccl, &Nccl::enabled>("nccl.enabled", kNeedsRestart, "Ask the NCCL or RCCL of jobs about their ranks (ml_nccl_*), by its RAS socket on this machine. Reading other users' processes needs CAP_SYS_PTRACE (docs/operations.md, \"NCCL\")."),
    row<&Config::nccl, &Nccl::users>("nccl.users", kNeedsRestart, "Users whose jobs are asked, and whose files are read, by name or uid. Empty: all.", check_users),
    row<&Config::nccl, &Nccl::interval>("nccl.interval", kNeedsRestart, "Time between two queries of a job, at least 30s. A query is work for all processes of the job, so machines without its first rank ask ten times less often.", check_nccl_interval),
    row<&Config::nccl, &Nccl::port>("nccl.port", kNeedsRestart, "Port of NCCL's RAS on loopback, as in the jobs' NCCL_RAS_ADDR.", check_port),
    row<&Config::nccl, &Nccl::oldest>("nccl.oldest", kNeedsRestart, "Oldest version of NCCL that is asked, at least 2.29.2: a query may crash jobs with earlier ones.", check_nccl_version),
    row<&Config::nccl, &Nccl::inspector>("nccl.inspector", kNeedsRestart, "Folder of NCCL Inspector's Prometheus files (NCCL_INSPECTOR_DUMP_DIR of the jobs), which are read also if nccl.enabled is false. Empty: none.", check_optional_path),
    row<&Config::nccl, &Nccl::inspector_interval>("nccl.inspector_interval", kNeedsRestart, "Time between two of Inspector's dumps (NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS of the jobs), at least 30s. The values of a file leave the page after three of them.", check_inspector_interval),
    row<&Config::nccl, &Nccl::flight_recorder>("nccl.flight_recorder", kNeedsRestart, "Prefixes of the dumps of PyTorch's flight recorder (TORCH_FR_DUMP_TEMP_FILE of the jobs), such as `/var/log/torch/trace_rank_`; the number of the rank follows. Empty: none.", check_dump_prefixes),
    row<&Config::paths, &Paths::sysfs>("paths.sysfs", kNeedsRestart, "Mount point of sysfs.", check_absolute_path),
    row<&Config::paths, &Paths::procfs>("paths.procfs", kNeedsRestart, "Mount point of procfs.", check_absolute_path),
    row<&Config::paths, &Paths::state>("paths.state", kNeedsRestart, "Folder of the state that survives a restart: the index of each device.", check_absolute_path),
    row<&Config::log, &Logging::level>("log.level", kReloads, "Lowest level that is logged."),
    row<&Config::log, &Logging::format>("log.format", kReloads, "auto: the journal if systemd runs the daemon, otherwise logfmt on stderr."),
    row<&Config::jobs, &Jobs::enabled>("jobs.enabled", kNeedsRestart, "Accept messages from jobs (the ml_* families)."),
    row<&Config::jobs, &Jobs::socket>("jobs.socket", kNeedsRestart, "Unix datagram socket for DogStatsD lines, unless systemd passes one; `\"\"`: none.", check_socket_path),
    row<&Config::jobs, &Jobs::stream_socket>("jobs.stream_socket", kNeedsRestart, "Unix stream socket for the same lines, unless systemd passes one; `\"\"`: none.", check_socket_path),
    row<&Config::jobs, &Jobs::socket_mode>("jobs.socket_mode", kNeedsRestart, "Permissions of both sockets, in octal; write permission allows sending. Not used for systemd's sockets.", check_socket_mode),
    row<&Config::jobs, &Jobs::users>("jobs.users", kReloads, "Users who may send, by name or uid, also over systemd's sockets. Empty: all. Names must exist.", check_users),
    row<&Config::jobs, &Jobs::mllog>("jobs.mllog", kNeedsRestart, "Files or pipes with MLPerf log lines, each as `RUN=/absolute/path`.", check_mllog_files),
    row<&Config::job_limits, &JobLimits::lines_per_second>("jobs.limits.lines_per_second", kReloads, "Maximum lines per second from the jobs of one user. A packed line counts once for each of its values.", check_not_zero),
    row<&Config::job_limits, &JobLimits::series_per_run>("jobs.limits.series_per_run", kReloads, "Maximum series of one run.", check_not_zero),
    row<&Config::job_limits, &JobLimits::series_per_user>("jobs.limits.series_per_user", kReloads, "Maximum series of all runs of one user. Values beyond it are summed under the run `_other`.", check_not_zero),
    row<&Config::job_limits, &JobLimits::series>("jobs.limits.series", kReloads, "Maximum series of all runs of all users.", check_not_zero),
    row<&Config::job_limits, &JobLimits::retention>("jobs.limits.retention", kReloads, "How long a run stays on the page after its last process ended.", check_retention),
    row<&Config::profiles, &Profiles::enabled>("profiles.enabled", kNeedsRestart, "Let users take profiles of their jobs by `gpumeter profile`, and take them by condition (docs/profiles.md)."),
    row<&Config::profiles, &Profiles::socket>("profiles.socket", kNeedsRestart, "Unix stream socket of `gpumeter profile`; every user may connect, and may profile its own processes. `\"\"`: none.", check_socket_path),
    row<&Config::profiles, &Profiles::kineto_folder>("profiles.kineto_folder", kNeedsRestart, "Folder of sockets for PyTorch in containers: the value of KINETO_IPC_SOCKET_DIR there. The daemon creates it, writable by all. The abstract socket `dynolog` is served in any case. Empty: none.", check_kineto_folder),
    row<&Config::profiles, &Profiles::profiler_ports>("profiles.profiler_ports", kNeedsRestart, "Ports of the profiler service that jobs of TensorFlow (`tf.profiler.experimental.server.start`) or JAX (`jax.profiler.start_server`) open on this machine, or of PyTorch's debug server (`worker_port`); each process needs its own. Processes of other users require CAP_SYS_PTRACE. `[]`: none.", check_ports),
    row<&Config::profiles, &Profiles::worker_sockets>("profiles.worker_sockets", kNeedsRestart, "Unix sockets of PyTorch's worker servers (TORCH_WORKER_SERVER_SOCKET): absolute paths, in which `*`, `?` and `[...]` match within a folder, such as `/run/torch/*.sock`. `[]`: none.", check_socket_patterns),
    row<&Config::profiles, &Profiles::folder>("profiles.folder", kNeedsRestart, "Folder of the traces, as the jobs see it. They write them with their own permissions. Newer versions of PyTorch accept only folders under the job's KINETO_ONDEMAND_TRACE_DIR (default /tmp).", check_trace_folder),
    row<&Config::profiles, &Profiles::trace_folder>("profiles.trace_folder", kNeedsRestart, "Folder of the traces that conditions take from PyTorch's debug server, whose jobs write no file. The daemon writes them, at most 512 MiB each and 2 GiB in all; the oldest make room. `\"\"`: none are taken.", check_own_trace_folder),
    row<&Config::profiles, &Profiles::users>("profiles.users", kNeedsRestart, "Users whose jobs may be profiled, by name or uid. Empty: all. Only a job's own user and root may ask in any case.", check_users),
    row<&Config::profiles, &Profiles::conditions>("profiles.conditions", kNeedsRestart, "Conditions that take a profile of a run: thermal_throttling, slow_steps, low_mfu.", check_profile_conditions),
    row<&Config::profiles, &Profiles::duration>("profiles.duration", kNeedsRestart, "Length of a profile by condition.", check_trace_time),
    row<&Config::profiles, &Profiles::hold>("profiles.hold", kNeedsRestart, "Time over which a condition is measured: it must be true on average over this time.", check_retention),
    row<&Config::profiles, &Profiles::cooldown>("profiles.cooldown", kNeedsRestart, "Minimum time between two profiles of a run by conditions."),
    row<&Config::profiles, &Profiles::per_run>("profiles.per_run", kNeedsRestart, "Maximum number of profiles of a run by conditions in 24 hours."),
    row<&Config::profiles, &Profiles::per_host>("profiles.per_host", kNeedsRestart, "Maximum number of profiles of all runs by conditions in 24 hours."),
    row<&Config::profiles, &Profiles::throttled_percent>("profiles.throttled_percent", kNeedsRestart, "thermal_throttling: share of the time in percent in which heat limits the clocks of one of the run's GPUs.", check_percent),
    row<&Config::profiles, &Profiles::slow_percent>("profiles.slow_percent", kNeedsRestart, "slow_steps: mean duration of a step, in percent of the median of the run so far.", check_not_zero),
    row<&Config::profiles, &Profiles::mfu_percent>("profiles.mfu_percent", kNeedsRestart, "low_mfu: model FLOPS utilisation in percent of the dense bf16 peak of the run's GPUs, below which a profile is taken.", check_percent),
    row<&Config::servers, &Servers::enabled>("servers.enabled", kNeedsRestart, "Find model servers (vLLM, SGLang, TGI, Triton, llama.cpp) by the listening ports of processes that use a GPU, and read their metrics pages: `ml_server_*` (docs/model-servers.md)."),
    row<&Config::servers, &Servers::ports>("servers.ports", kNeedsRestart, "Ports that are read if such a process listens there on loopback. The daemon sends `GET /metrics` to them.", check_ports),
    row<&Config::servers, &Servers::processes>("servers.processes", kNeedsRestart, "Names of processes, such as `[vllm, llama-server]`: only their ports are read. Empty: any."),
    row<&Config::servers, &Servers::targets>("servers.targets", kNeedsRestart, "Metrics pages that are read in any case, such as `http://172.17.0.2:8000/metrics`: of servers in other network namespaces, or without a GPU.", check_targets),
};
// clang-format on

std::vector<Key> fixed_keys() {
  std::vector<Key> all;
  for (const FixedKey& fixed : kFixedKeys) all.push_back(key_of(fixed));
  return all;
}

}  // namespace

std::vector<Key> keys(Schemas schemas) {
  std::vector<Key> all = fixed_keys();
  for (const CollectorSchema& schema : schemas) {
    all.push_back(enabled_key(schema.name));
    for (const OptionSchema& option : schema.options) all.push_back(option_key(schema.name, option));
  }
  return all;
}

Config defaults(Schemas schemas) {
  Config config;
  for (const CollectorSchema& schema : schemas) {
    auto& options = config.collectors[schema.name].options;
    for (const OptionSchema& option : schema.options) {
      const bool is_empty_list = option.kind == OptionSchema::Kind::list && option.fallback.empty();
      auto& values = options[std::string(option.name)];
      if (!is_empty_list) values.emplace_back(option.fallback);
    }
  }
  return config;
}

const Key* find_key(std::span<const Key> keys, std::string_view path) noexcept {
  const auto key = std::find_if(keys.begin(), keys.end(), [path](const Key& k) { return k.path == path; });
  return key == keys.end() ? nullptr : &*key;
}

Complaint set(std::span<const Key> keys, Config& config, std::string_view path,
              std::span<const std::string> values) {
  const Key* key = find_key(keys, path);
  if (key == nullptr) return "is not a key of the configuration";
  Node list;
  list.kind = Node::Kind::sequence;
  for (const std::string& value : values) {
    Node& node = list.children.emplace_back();
    node.kind = Node::Kind::scalar;
    node.text = value;
  }
  if (key->is_list) return key->read(list, config);
  return values.size() == 1 ? key->read(list.children.front(), config) : "must be one value";
}

std::vector<std::string> restart_needed(const Config& running, const Config& wanted) {
  std::vector<std::string> paths;
  for (const Key& key : fixed_keys()) {
    if (!key.reloadable && key.show(running) != key.show(wanted)) paths.push_back(key.path);
  }
  return paths;
}

}  // namespace gpumeter::config
