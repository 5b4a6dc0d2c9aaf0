#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/device_labels.hpp"
#include "base/duration.hpp"
#include "base/enum_names.hpp"

/// The configuration as the daemon uses it: plain structs whose member initialisers are the defaults. The
/// table of keys.cpp holds each key's meaning, accepted values and whether a reload applies it.
namespace gpumeter::config {

enum class LogLevel : std::uint8_t { debug, info, warn, error };
enum class LogFormat : std::uint8_t { automatic, logfmt, json };
enum class Enabled : std::uint8_t { automatic, on, off };
enum class MetricsDetail : std::uint8_t { standard, full };

inline constexpr EnumNames<LogLevel, 4> kLogLevelNames = {{{LogLevel::debug, "debug"},
                                                           {LogLevel::info, "info"},
                                                           {LogLevel::warn, "warn"},
                                                           {LogLevel::error, "error"}}};
inline constexpr EnumNames<LogFormat, 3> kLogFormatNames = {
    {{LogFormat::automatic, "auto"}, {LogFormat::logfmt, "logfmt"}, {LogFormat::json, "json"}}};
inline constexpr EnumNames<Enabled, 3> kEnabledNames = {
    {{Enabled::automatic, "auto"}, {Enabled::on, "true"}, {Enabled::off, "false"}}};
inline constexpr EnumNames<MetricsDetail, 2> kMetricsDetailNames = {
    {{MetricsDetail::standard, "standard"}, {MetricsDetail::full, "full"}}};

constexpr const auto& names_of(LogLevel) noexcept { return kLogLevelNames; }
constexpr const auto& names_of(LogFormat) noexcept { return kLogFormatNames; }
constexpr const auto& names_of(Enabled) noexcept { return kEnabledNames; }
constexpr const auto& names_of(MetricsDetail) noexcept { return kMetricsDetailNames; }

/// Returns a word of one of the closed sets above in the file's spelling.
template <class Word>
  requires std::is_enum_v<Word>
constexpr std::string_view to_string(Word word) noexcept {
  return names_of(word).of(word);
}

struct Web {
  std::vector<std::string> listen = {"localhost:10478"};  ///< "host:port"; ":port" means all addresses
  std::string config_file;  ///< TLS, users and headers, as Prometheus' exporters have them; empty: none
  std::string telemetry_path = "/metrics";
  unsigned max_requests = 40;  ///< maximum of concurrent scrapes; 0: no limit
  bool operator==(const Web&) const = default;
};

/// The series of the page for Prometheus. The live page, the history, the conditions and the JSON pages have
/// all series in any case. The default has what the shipped rules, alerts and dashboards read: Prometheus
/// keeps every series in memory, and most of the others are a 0 that never changes.
struct Metrics {
  MetricsDetail detail = MetricsDetail::standard;
  std::vector<std::string> include;  ///< SeriesPattern; on the page in any case
  std::vector<std::string> exclude;  ///< never on the page, unless included
  bool operator==(const Metrics&) const = default;
};

/// The sampling interval of each tier. The floor is 1 s because polling a driver faster was measured to slow
/// its jobs by up to 2 %.
struct Sampling {
  Duration fast = std::chrono::seconds(1);
  Duration normal = std::chrono::seconds(10);
  Duration slow = std::chrono::seconds(60);
  Duration floor = std::chrono::seconds(1);
  bool operator==(const Sampling&) const = default;
};

/// The number of devices that the machine should have, by vendor as in the label `vendor`. A number for the
/// whole machine is under kAnyVendor, alone. Empty: nothing is expected.
struct ExpectedDevices {
  static constexpr std::string_view kAnyVendor = "any";
  std::map<std::string, unsigned> by_vendor;
  bool operator==(const ExpectedDevices&) const = default;
};

struct Devices {
  ExpectedDevices expected;
  std::optional<Duration> forget;  ///< how long a missing device keeps its `gpu_up 0`; nullopt: until
                                   ///< `gpumeter forget`
  std::map<std::string, std::string> names;  ///< uuid or PCI address ("0000:0c:00.0") -> name
  bool operator==(const Devices&) const = default;
};

/// Attribution of devices to their users, for drivers that report it.
struct Workloads {
  bool enabled = true;
  bool processes = false;  ///< also export series for each process
  bool operator==(const Workloads&) const = default;
};

/// Who was given which GPU, whether or not a process uses it.
struct Allocations {
  unsigned idle_percent = 1;                         ///< busy share below which an allocated GPU is idle
  std::string slurm = "/run/gpumeter/slurm";         ///< files of Slurm's prolog; empty: none
  std::string slurm_gpus;                            ///< output of `slurmd -G`, or gres.conf; empty: none
  std::string manual = "/run/gpumeter/allocations";  ///< files of `gpumeter allocate`; empty: none
  std::string held = "/run/gpumeter-held";           ///< files of gpumeter-held; empty: none
  bool operator==(const Allocations&) const = default;
};

struct Paths {
  std::string sysfs = "/sys";
  std::string procfs = "/proc";
  std::string state = "/var/lib/gpumeter";
  bool operator==(const Paths&) const = default;
};

struct Logging {
  LogLevel level = LogLevel::info;
  LogFormat format = LogFormat::automatic;  ///< the journal if systemd runs the daemon, otherwise logfmt
  bool operator==(const Logging&) const = default;
};

/// The sources of the jobs' messages about their runs.
struct Jobs {
  bool enabled = true;
  std::string socket = "/run/gpumeter/jobs.sock";                ///< datagrams; empty: none
  std::string stream_socket = "/run/gpumeter/jobs-stream.sock";  ///< connections; empty: none
  std::string socket_mode = "0666";                              ///< octal, of both sockets
  std::vector<std::string> users;                                ///< names or uids; empty: all users
  std::vector<std::string> mllog;                                ///< "RUN=/absolute/path"
  bool operator==(const Jobs&) const = default;
};

/// Limits for the jobs of one user. The defaults are those of collectors/jobs/model/shared.hpp, which gives
/// the reasons.
struct JobLimits {
  unsigned lines_per_second = 2000;
  unsigned series_per_run = 640;
  unsigned series_per_user = 8192;
  unsigned series = 40'000;
  Duration retention = std::chrono::minutes(10);
  bool operator==(const JobLimits&) const = default;
};

/// The sources of the names of Kubernetes' pods on this node. An empty path: not used.
struct Kubernetes {
  Enabled enabled = Enabled::automatic;
  std::string pods_socket = "/var/lib/kubelet/pods-api/pods-api.sock";
  std::string pod_resources_socket = "/var/lib/kubelet/pod-resources/kubelet.sock";
  std::string log_path = "/var/log";
  std::string cri_socket;           ///< for example /run/containerd/containerd.sock
  std::vector<std::string> labels;  ///< of pods, exported as k8s_label_*
  bool operator==(const Kubernetes&) const = default;
};

/// Profiles of jobs on request and by condition.
struct Profiles {
  bool enabled = false;
  std::string socket = "/run/gpumeter/profiles.sock";  ///< of `gpumeter profile`; empty: none
  std::string kineto_folder;                           ///< KINETO_IPC_SOCKET_DIR of jobs; empty: none
  std::vector<std::string> profiler_ports;  ///< of TensorFlow's and JAX's profiler service; empty: none
  std::vector<std::string> worker_sockets;  ///< of PyTorch's debug server; patterns; empty: none
  std::string folder = "/tmp";              ///< of the traces, as the jobs see it
  std::string trace_folder = "/var/cache/gpumeter/traces";  ///< of those that the daemon writes; empty: none
  std::vector<std::string> users;                           ///< names or uids; empty: all users
  std::vector<std::string> conditions;                      ///< those that take a profile
  Duration duration = std::chrono::seconds(5);              ///< of a condition's profile
  Duration hold = std::chrono::minutes(1);                  ///< how long a condition must hold
  Duration cooldown = std::chrono::hours(1);                ///< between two profiles of a run by conditions
  unsigned per_run = 3;                                     ///< profiles by conditions, in 24 hours
  unsigned per_host = 10;
  unsigned throttled_percent = 20;  ///< of the time
  unsigned slow_percent = 200;      ///< of the median duration of a step
  unsigned mfu_percent = 20;
  bool operator==(const Profiles&) const = default;
};

/// Queries to the NCCL and RCCL of jobs about their ranks, and the files of NCCL Inspector and of PyTorch's
/// flight recorder, which are read also if the queries are not enabled.
struct Nccl {
  bool enabled = false;
  std::vector<std::string> users;                          ///< names or uids; empty: all users
  Duration interval = std::chrono::seconds(30);            ///< at least kShortest
  unsigned port = 28028;                                   ///< NCCL's own default (NCCL_RAS_ADDR)
  std::string oldest = "2.29.2";                           ///< no process with an older NCCL is asked
  std::string inspector;                                   ///< folder of NCCL Inspector's files; empty: none
  Duration inspector_interval = std::chrono::seconds(30);  ///< of its dumps; at least kShortest
  std::vector<std::string> flight_recorder;                ///< prefixes of PyTorch's dumps; empty: none
  static constexpr auto kShortest = std::chrono::seconds(30);  ///< also Inspector's own minimum
  bool operator==(const Nccl&) const = default;
};

/// Model servers whose metrics pages the daemon reads.
struct Servers {
  bool enabled = false;
  /// Of vLLM, Triton, llama.cpp, SGLang and TGI, by default.
  std::vector<std::string> ports = {"8000", "8002", "8080", "30000", "3000"};
  std::vector<std::string> processes;  ///< names; empty: any
  std::vector<std::string> targets;    ///< "http://host:port/path"; read also if not enabled
  bool operator==(const Servers&) const = default;
};

struct CollectorConfig {
  Enabled enabled = Enabled::automatic;
  /// Holds every key of the collector's schema, checked against its kind. A plain value is a list of one; an
  /// empty list has no values.
  std::map<std::string, std::vector<std::string>> options;
  bool operator==(const CollectorConfig&) const = default;
};

struct Config {
  Web web;
  Metrics metrics;
  Sampling sampling;
  DeviceLabels device_labels;
  Devices devices;
  Workloads workloads;
  Allocations allocations;
  Paths paths;
  Logging log;
  Kubernetes kubernetes;
  Nccl nccl;
  Jobs jobs;
  JobLimits job_limits;  ///< `jobs.limits` in the file
  Profiles profiles;
  Servers servers;
  std::map<std::string, CollectorConfig> collectors;  ///< one entry for every known collector
  bool operator==(const Config&) const = default;
};

}  // namespace gpumeter::config
