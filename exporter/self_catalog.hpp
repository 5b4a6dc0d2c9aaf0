#pragma once

#include "collectors/api/descriptor.hpp"

/// What the daemon tells of itself. The devices' families are in collectors/api/catalog.hpp.
namespace gpumeter::self {

inline constexpr MetricDescriptor build_info{
    "gpumeter_build_info", "What was built: always 1, the facts are labels.", "", MetricType::gauge};
inline constexpr MetricDescriptor collector_up{"gpumeter_collector_up",
                                               "Whether the collector as a whole works: its library loads "
                                               "and discovery succeeds. A device's trouble is gpu_up.",
                                               "", MetricType::gauge};
inline constexpr MetricDescriptor collector_devices{
    "gpumeter_collector_devices", "Devices that the collector reads.", "", MetricType::gauge};
inline constexpr MetricDescriptor pci_devices{
    "gpumeter_pci_devices",
    "GPUs that the PCI bus shows, by vendor, to be held against the devices that are read.", "",
    MetricType::gauge};
inline constexpr MetricDescriptor collector_last_success{
    "gpumeter_collector_last_success_timestamp_seconds",
    "When one of the collector's devices last completed a pass, in seconds since 1970.", "seconds",
    MetricType::gauge};
inline constexpr MetricDescriptor sample_duration{
    "gpumeter_sample_duration_seconds",
    "How long the last pass over the rows of this tier took. Passes run in the background, not at a scrape.",
    "seconds", MetricType::gauge};
inline constexpr MetricDescriptor read_errors{"gpumeter_read_errors_total",
                                              "Reads of a value that gave none, by how they ended.", "",
                                              MetricType::counter};
inline constexpr MetricDescriptor simulated{
    "gpumeter_simulated", "Whether simulated devices are on this page.", "", MetricType::gauge};
inline constexpr MetricDescriptor config_reload_successful{
    "gpumeter_config_last_reload_successful",
    "Whether the last attempt to load the configuration succeeded; if not, the one before is in force.", "",
    MetricType::gauge};
inline constexpr MetricDescriptor config_reload_timestamp{
    "gpumeter_config_last_reload_success_timestamp_seconds",
    "When the configuration in force was loaded, in seconds since 1970.", "seconds", MetricType::gauge};
inline constexpr MetricDescriptor http_requests{
    "gpumeter_http_requests_total", "HTTP requests answered, by status code; health probes aside.", "",
    MetricType::counter};

inline constexpr MetricDescriptor process_cpu_seconds{"process_cpu_seconds_total",
                                                      "Total user and system CPU time spent in seconds.",
                                                      "seconds", MetricType::counter};
inline constexpr MetricDescriptor process_open_fds{"process_open_fds", "Number of open file descriptors.", "",
                                                   MetricType::gauge};
inline constexpr MetricDescriptor process_max_fds{
    "process_max_fds", "Maximum number of open file descriptors.", "", MetricType::gauge};
inline constexpr MetricDescriptor process_virtual_memory{
    "process_virtual_memory_bytes", "Virtual memory size in bytes.", "bytes", MetricType::gauge};
inline constexpr MetricDescriptor process_resident_memory{
    "process_resident_memory_bytes", "Resident memory size in bytes.", "bytes", MetricType::gauge};
inline constexpr MetricDescriptor process_start_time{"process_start_time_seconds",
                                                     "Start time of the process since unix epoch in seconds.",
                                                     "seconds", MetricType::gauge};
inline constexpr MetricDescriptor process_threads{"process_threads", "Number of OS threads in the process.",
                                                  "", MetricType::gauge};

/// All of them, for docs and checks.
inline constexpr const MetricDescriptor* kCatalog[] = {
    &build_info,
    &collector_up,
    &collector_devices,
    &pci_devices,
    &collector_last_success,
    &sample_duration,
    &read_errors,
    &simulated,
    &config_reload_successful,
    &config_reload_timestamp,
    &http_requests,
    &process_cpu_seconds,
    &process_open_fds,
    &process_max_fds,
    &process_virtual_memory,
    &process_resident_memory,
    &process_start_time,
    &process_threads,
};

consteval bool all_valid() {
  for (const MetricDescriptor* metric : kCatalog) {
    if (!is_valid(*metric)) return false;
  }
  return true;
}
static_assert(all_valid(), "a family breaks the naming rules of descriptor.hpp");

}  // namespace gpumeter::self
