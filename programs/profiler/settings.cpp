#include "programs/profiler/settings.hpp"

#include <algorithm>

namespace gpumeter::profiles {
namespace {

using options::check_percent;
using options::check_socket_path;
using options::check_users;
using options::checked;
using options::Complaint;
using options::Option;
using options::option;
using options::printable;
using options::Reload;

/// Requires a path that Kineto accepts, in ASCII without blanks, = # and "..".
Complaint check_trace_folder(const std::string& path) {
  const auto is_plain = [](char c) { return c > ' ' && c < '\x7f' && c != '=' && c != '#'; };
  constexpr std::size_t kLongest = 256;
  const bool is_valid = path.starts_with('/') && path.size() <= kLongest &&
                        std::all_of(path.begin(), path.end(), is_plain) &&
                        path.find("..") == std::string::npos;
  if (is_valid) return std::nullopt;
  return "must be an absolute path of printable ASCII characters without blanks, = # and .., not \"" +
         printable(path) + "\"";
}

Complaint check_own_trace_folder(const std::string& path) {
  return path.empty() ? std::nullopt : check_trace_folder(path);
}

Complaint check_socket_patterns(const std::vector<std::string>& patterns) {
  const auto wrong =
      std::ranges::find_if(patterns, [](const std::string& each) { return !each.starts_with('/'); });
  if (wrong == patterns.end()) return std::nullopt;
  return "must be absolute paths, not \"" + printable(*wrong) + "\"";
}

/// Requires the same, or no path, and one so short that the clients' sockets fit into it.
Complaint check_kineto_folder(const std::string& path) {
  // Kineto adds "/dynoconfigclient" and a UUID of 36 characters, and does not check the length.
  constexpr std::size_t kLongest = 54;
  if (path.empty()) return std::nullopt;
  if (path.size() > kLongest) return "must have at most 54 bytes, so that the clients' sockets fit";
  return check_trace_folder(path);
}

Complaint check_trace_time(const Duration& duration) {
  if (duration >= std::chrono::milliseconds(1) && duration <= std::chrono::minutes(5)) return std::nullopt;
  return "must be from 1ms to 5m";
}

Complaint check_profile_conditions(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (name == kThermal || name == kSlowSteps || name == kLowMfu) continue;
    return "must have thermal_throttling, slow_steps or low_mfu, not \"" + printable(name) + "\"";
  }
  return std::nullopt;
}

Complaint check_hold(const Duration& hold) {
  if (hold >= std::chrono::seconds(10) && hold <= std::chrono::hours(24)) return std::nullopt;
  return "must be from 10s to 24h";
}

Complaint check_slow_percent(const unsigned& percent) {
  if (percent > 0) return std::nullopt;
  return "must be at least 1; set jobs.enabled to false to ignore all jobs";
}

// One row an option.
// clang-format off
constexpr Option kOptions[] = {
    option<&Settings::enabled>("enabled", Reload::applies, "Let users take profiles of their jobs by `gpumeter profile`, and take them by condition (docs/profiles.md)."),
    option<&Settings::socket>("socket", Reload::applies, "Unix stream socket of `gpumeter profile`; every user may connect, and may profile its own processes. `\"\"`: none.", checked<check_socket_path>),
    option<&Settings::kineto_folder>("kineto_folder", Reload::applies, "Folder of sockets for PyTorch in containers: the value of KINETO_IPC_SOCKET_DIR there. gpumeter-profiler creates it, writable by all. The abstract socket `dynolog` is served in any case. Empty: none.", checked<check_kineto_folder>),
    option<&Settings::profiler_ports>("profiler_ports", Reload::applies, "Ports of the profiler service that jobs of TensorFlow (`tf.profiler.experimental.server.start`) or JAX (`jax.profiler.start_server`) open on this machine, or of PyTorch's debug server (`worker_port`); each process needs its own. Processes of other users require CAP_SYS_PTRACE. `[]`: none."),
    option<&Settings::worker_sockets>("worker_sockets", Reload::applies, "Unix sockets of PyTorch's worker servers (TORCH_WORKER_SERVER_SOCKET): absolute paths, in which `*`, `?` and `[...]` match within a folder, such as `/run/torch/*.sock`. `[]`: none.", checked<check_socket_patterns>),
    option<&Settings::folder>("folder", Reload::applies, "Folder of the traces, as the jobs see it. They write them with their own permissions. Newer versions of PyTorch accept only folders under the job's KINETO_ONDEMAND_TRACE_DIR (default /tmp).", checked<check_trace_folder>),
    option<&Settings::trace_folder>("trace_folder", Reload::applies, "Folder of the traces that conditions take from PyTorch's debug server, whose jobs write no file. gpumeter-profiler writes them, at most 512 MiB each and 2 GiB in all; the oldest make room. `\"\"`: none are taken.", checked<check_own_trace_folder>),
    option<&Settings::users>("users", Reload::applies, "Users whose jobs may be profiled, by name or uid. Empty: all. Only a job's own user and root may ask in any case.", checked<check_users>),
    option<&Settings::thresholds, &Thresholds::enabled>("conditions", Reload::applies, "Conditions that take a profile of a run: thermal_throttling, slow_steps, low_mfu.", checked<check_profile_conditions>),
    option<&Settings::duration>("duration", Reload::applies, "Length of a profile by condition.", checked<check_trace_time>),
    option<&Settings::thresholds, &Thresholds::hold>("hold", Reload::applies, "Time over which a condition is measured: it must be true on average over this time.", checked<check_hold>),
    option<&Settings::budget, &Budget::cooldown>("cooldown", Reload::applies, "Minimum time between two profiles of a run by conditions."),
    option<&Settings::budget, &Budget::per_run>("per_run", Reload::applies, "Maximum number of profiles of a run by conditions in 24 hours."),
    option<&Settings::budget, &Budget::per_host>("per_host", Reload::applies, "Maximum number of profiles of all runs by conditions in 24 hours."),
    option<&Settings::thresholds, &Thresholds::throttled_percent>("throttled_percent", Reload::applies, "thermal_throttling: share of the time in percent in which heat limits the clocks of one of the run's GPUs.", checked<check_percent>),
    option<&Settings::thresholds, &Thresholds::slow_percent>("slow_percent", Reload::applies, "slow_steps: mean duration of a step, in percent of the median of the run so far.", checked<check_slow_percent>),
    option<&Settings::thresholds, &Thresholds::mfu_percent>("mfu_percent", Reload::applies, "low_mfu: model FLOPS utilisation in percent of the dense bf16 peak of the run's GPUs, below which a profile is taken.", checked<check_percent>),
};
// clang-format on

}  // namespace

constinit const options::Section kSection = options::section("profiles", kOptions);

}  // namespace gpumeter::profiles
