#pragma once

#include <span>

#include "collectors/api/catalog.hpp"

/// The families that describe the daemon itself. The naming rules of collectors/api/catalog.hpp apply.
namespace gpumeter::self_catalog {

using catalog::counter;
using catalog::gauge;

// clang-format off
inline constexpr auto build_info = gauge("gpumeter_build_info", "", "Version, revision, branch and compiler of the build, as labels; always 1.");
inline constexpr auto collector_up = gauge("gpumeter_collector_up", "", "1 if the collector's library is loaded and device discovery succeeds. gpu_up reports the state of each device.");
inline constexpr auto collector_released = gauge("gpumeter_collector_released", "", "1 while the collector's drivers are closed on request (SIGUSR1). Its devices have gpu_up 0 and are not lost.");
inline constexpr auto collector_devices = gauge("gpumeter_collector_devices", "", "Number of devices that the collector reads.");
inline constexpr auto collector_last_success = gauge("gpumeter_collector_last_success_timestamp_seconds", "seconds", "Unix time at which a device of the collector last completed a sampling pass.");
inline constexpr auto values_denied = gauge("gpumeter_values_denied", "", "1 for values of the collector's devices that the service may not read as it is installed, by the drop-in of /usr/share/doc/gpumeter/examples/systemd that permits them; absent otherwise.");
inline constexpr auto part_up = gauge("gpumeter_part_up", "", "1 if the part of the daemon answers; 0 while its turn is past its deadline, because the system does not answer it. Its series are then absent.", kFullPageOnly);
inline constexpr auto pci_devices = gauge("gpumeter_pci_devices", "", "GPUs on the PCI bus, by vendor. Compare with gpumeter_collector_devices.");
inline constexpr auto given_device_info = gauge("gpumeter_given_device_info", "", "GPU that a virtual machine uses by vfio, so that only the machine itself can read it; always 1.");
inline constexpr auto devices_expected = gauge("gpumeter_devices_expected", "", "Number of GPUs that the machine should have (devices.expected), by vendor. vendor=any: all vendors together. Absent if not configured.");
inline constexpr auto sample_duration = gauge("gpumeter_sample_duration_seconds", "seconds", "Duration of the last sampling pass in seconds, by tier. Passes run in the background, not during a scrape.");
inline constexpr auto read_errors = counter("gpumeter_read_errors_total", "", "Failed reads of a GPU, by status. Sources that never returned a value are not counted.", kWhileNonzero);
inline constexpr auto drm_processes_inaccessible = gauge("gpumeter_drm_processes_inaccessible", "", "Processes whose file descriptors gpumeter may not read, or not all because they are too many; their use of GPUs is missing. Absent unless clients of a DRM device are scanned.");
inline constexpr auto drm_scan_duration = gauge("gpumeter_drm_scan_duration_seconds", "seconds", "Duration of the last scan of /proc for clients of DRM devices, in seconds. Absent unless clients of a DRM device are scanned.");
inline constexpr auto drm_malformed_lines = counter("gpumeter_drm_malformed_lines_total", "", "Lines of /proc/PID/fdinfo about DRM clients that could not be parsed. Absent unless clients of a DRM device are scanned.");
inline constexpr auto names_source_up = gauge("gpumeter_names_source_up", "", "1 if the last request to this source of names of workloads succeeded. Absent for sources that are not there.");
inline constexpr auto names_source_last_success = gauge("gpumeter_names_source_last_success_timestamp_seconds", "seconds", "Unix time at which this source of names last answered. The answer holds for 10 minutes.");
inline constexpr auto names_source_errors = counter("gpumeter_names_source_errors_total", "", "Failed requests to sources of names of workloads, by reason.");
inline constexpr auto kernel_log_readable = gauge("gpumeter_kernel_log_readable", "", "1 if gpumeter reads the kernel's log, 0 if it may not or the log is missing. Absent with kernel.log: off.", kFullPageOnly);
inline constexpr auto powercap_readable = gauge("gpumeter_powercap_readable", "", "1 if gpumeter reads the energy of the processors from powercap, 0 if only root may. Absent without powercap.", kFullPageOnly);
inline constexpr auto kernel_log_lost = counter("gpumeter_kernel_log_lost_total", "", "Records of the kernel's log that the kernel overwrote before gpumeter read them. Absent with kernel.log: off.", kWhileNonzero);
inline constexpr auto nccl_state = gauge("gpumeter_nccl_state", "", "1 for the state of the queries to NCCL for each user whose NCCL listens on this machine: asked; failed: no valid answer; old_version, unknown_version, or no_permission: not asked, because a query might crash the job. Absent unless nccl.enabled.");
inline constexpr auto nccl_files = gauge("gpumeter_nccl_files", "", "Files of NCCL Inspector and of PyTorch's flight recorder in the configured places, by source and state. read: on the page; torn: still being written; stale: too old; foreign: the owner has no process on the GPU, or is not among nccl.users; unknown_gpu: no GPU of this machine; invalid: not readable, the log has the reason.");
inline constexpr auto page_up = gauge("gpumeter_page_up", "", "1 if the series of this file of pages.folders are exported, 0 if the file is too old or wrong; the log has the reason. author: its owner, unless root or a program of gpumeter.");
inline constexpr auto page_age = gauge("gpumeter_page_age_seconds", "seconds", "Time since this file of pages.folders was written, in seconds.");
inline constexpr auto otlp_up = gauge("gpumeter_otlp_up", "", "1 if the receiver of OTLP took all of the last request, 0 if it did not answer or rejected points; the log has the reason. Absent unless otlp.endpoint is set.");
inline constexpr auto otlp_points = counter("gpumeter_otlp_points_total", "", "Data points for the receiver of OTLP, by outcome.");
inline constexpr auto otlp_queue = gauge("gpumeter_otlp_queue_bytes", "bytes", "Length of the requests that wait for the receiver of OTLP, in bytes.");
inline constexpr auto simulated = gauge("gpumeter_simulated", "", "1 if the page contains simulated devices or those of a recording.");
inline constexpr auto replay_time = gauge("gpumeter_replay_time_seconds", "seconds", "Unix time at which the page that is shown was recorded. Absent unless --replay is given.");
inline constexpr auto config_reload_successful = gauge("gpumeter_config_last_reload_successful", "", "1 if the last attempt to load the configuration succeeded. Otherwise the previous configuration stays in force.");
inline constexpr auto config_reload_timestamp = gauge("gpumeter_config_last_reload_success_timestamp_seconds", "seconds", "Unix time at which the configuration in force was loaded.");
inline constexpr auto web_config_reload_successful = gauge("gpumeter_web_config_last_reload_successful", "", "1 if the last attempt to load the web configuration (web.config_file) succeeded. Otherwise the previous one stays in force.");
inline constexpr auto web_config_reload_timestamp = gauge("gpumeter_web_config_last_reload_success_timestamp_seconds", "seconds", "Unix time at which the web configuration in force was loaded or found unchanged.");
inline constexpr auto web_certificate_expiry = gauge("gpumeter_web_certificate_expiry_timestamp_seconds", "seconds", "Unix time at which the server's TLS certificate ends. Absent without TLS.");
inline constexpr auto http_requests = counter("gpumeter_http_requests_total", "", "HTTP requests, by status code, without health probes.", kWhileNonzero);
inline constexpr auto log_dropped = counter("gpumeter_log_dropped_total", "", "Log records dropped because the log's reader was too slow or a write failed.");

inline constexpr auto jobs_dropped = counter("gpumeter_jobs_dropped_total", "", "Rejected lines, values, datagrams and connections of jobs, by reason. reason=series_limit: where possible, values without a series of their own are summed under run=_other.", kWhileNonzero);

inline constexpr auto process_cpu_seconds = counter("process_cpu_seconds_total", "seconds", "Total user and system CPU time spent in seconds.");
inline constexpr auto process_open_fds = gauge("process_open_fds", "", "Number of open file descriptors.");
inline constexpr auto process_max_fds = gauge("process_max_fds", "", "Maximum number of open file descriptors.");
inline constexpr auto process_virtual_memory = gauge("process_virtual_memory_bytes", "bytes", "Virtual memory size in bytes.");
inline constexpr auto process_resident_memory = gauge("process_resident_memory_bytes", "bytes", "Resident memory size in bytes.");
inline constexpr auto process_start_time = gauge("process_start_time_seconds", "seconds", "Start time of the process since unix epoch in seconds.");
inline constexpr auto process_threads = gauge("process_threads", "", "Number of OS threads in the process.");
// clang-format on

/// All families, for docs and checks.
inline constexpr const MetricDescriptor* kAll[] = {
    &build_info,
    &collector_up,
    &collector_released,
    &collector_devices,
    &collector_last_success,
    &values_denied,
    &part_up,
    &pci_devices,
    &given_device_info,
    &devices_expected,
    &sample_duration,
    &read_errors,
    &drm_processes_inaccessible,
    &drm_scan_duration,
    &drm_malformed_lines,
    &names_source_up,
    &names_source_last_success,
    &names_source_errors,
    &powercap_readable,
    &kernel_log_readable,
    &kernel_log_lost,
    &nccl_state,
    &nccl_files,
    &page_up,
    &page_age,
    &otlp_up,
    &otlp_points,
    &otlp_queue,
    &simulated,
    &replay_time,
    &config_reload_successful,
    &config_reload_timestamp,
    &web_config_reload_successful,
    &web_config_reload_timestamp,
    &web_certificate_expiry,
    &http_requests,
    &log_dropped,
    &jobs_dropped,
    &process_cpu_seconds,
    &process_open_fds,
    &process_max_fds,
    &process_virtual_memory,
    &process_resident_memory,
    &process_start_time,
    &process_threads,
};
constexpr std::span<const MetricDescriptor* const> all() noexcept { return kAll; }

}  // namespace gpumeter::self_catalog
