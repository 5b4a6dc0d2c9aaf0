#pragma once

#include "collectors/api/descriptor.hpp"

/// Every family of devices and jobs, for all vendors: name, help, unit, type. Dashboards and alerts depend on
/// the names, so a rename needs a line in CHANGELOG.md. The compiler checks the naming rules. The last column
/// is the family's part of the standard page: everything that the shipped rules, alerts and dashboards read.
namespace gpumeter::catalog {

// A family that breaks a rule does not compile: "subexpression is not a constant expression".
consteval MetricDescriptor checked(MetricDescriptor metric) {
  return is_valid(metric) ? metric : throw metric.name;
}
consteval MetricDescriptor gauge(std::string_view name, std::string_view unit, std::string_view help,
                                 Detail detail = {}) {
  return checked({name, help, unit, MetricType::gauge, detail});
}
consteval MetricDescriptor counter(std::string_view name, std::string_view unit, std::string_view help,
                                   Detail detail = {}) {
  return checked({name, help, unit, MetricType::counter, detail});
}
consteval MetricDescriptor histogram(std::string_view name, std::string_view unit, std::string_view help,
                                     Detail detail = {}) {
  return checked({name, help, unit, MetricType::histogram, detail});
}

// clang-format off
// The device itself
inline constexpr auto info = gauge("gpu_info", "", "Static facts of the device, as labels; always 1. Join by uuid.");
inline constexpr auto up = gauge("gpu_up", "", "1 if gpumeter reads the device, 0 if the device is lost or its driver hangs.");
inline constexpr auto suspended = gauge("gpu_suspended", "", "1 while runtime power management has suspended the device. gpumeter does not wake it.");
inline constexpr auto observed_seconds = counter("gpu_observed_seconds_total", "seconds", "Time covered by the integrated counters of a tier, in seconds. rate(x) / rate(gpu_observed_seconds_total) is the true mean of x.", {Detail::Level::full, "tier", "fast"});
inline constexpr auto meter_source_info = gauge("gpu_meter_source_info", "", "Origin of each counter, by quantity; always 1. source=hardware: the driver's counter; samples: the driver's sample buffer; fdinfo: the counts of the device's clients in /proc/PID/fdinfo; integrated: integrated by gpumeter. quantity=workload_energy: how energy was divided at the last list of processes, by activity of partitions, busy time of processes, slices, memory or in equal parts.", kFullPageOnly);
inline constexpr auto mode = gauge("gpu_mode", "", "1 for the active state of each mode.", {Detail::Level::full, "mode", "ecc"});

// Utilisation
inline constexpr auto utilization = gauge("gpu_utilization_ratio", "ratio", "Share of time in which at least one kernel or engine job was resident, as last averaged by the driver.");
inline constexpr auto busy_seconds = counter("gpu_busy_seconds_total", "seconds", "Time in which at least one kernel or engine job was resident, in seconds. NVIDIA: utilization.gpu, from the driver's sample buffer; AMD: the accumulated gfx_activity from MI300 on, otherwise gpu_busy_percent or gfx_activity of the SMU; Intel: the busiest engine; other drivers: the busiest class of engines.");
inline constexpr auto engine_utilization = gauge("gpu_engine_utilization_ratio", "ratio", "Share of time in which an engine was busy, by engine.");
inline constexpr auto engine_busy_seconds = counter("gpu_engine_busy_seconds_total", "seconds", "Time in which an engine was busy, in seconds, by engine.");
inline constexpr auto gt_idle_seconds = counter("gpu_gt_idle_seconds_total", "seconds", "Time in which a graphics tile (GT) was powered down by its own idle control (Intel RC6, C6), in seconds, by gt. The complement is an upper bound of busy time, not busy time.", kFullPageOnly);
inline constexpr auto memory_controller_utilization = gauge("gpu_memory_controller_utilization_ratio", "ratio", "Share of time in which the memory controller transferred data.");
inline constexpr auto memory_controller_busy_seconds = counter("gpu_memory_controller_busy_seconds_total", "seconds", "Time in which the memory controller transferred data, in seconds.");
inline constexpr auto compute_active = gauge("gpu_compute_active_ratio", "ratio", "Share of compute units with resident work.");
inline constexpr auto compute_active_seconds = counter("gpu_compute_active_seconds_total", "seconds", "Time with resident work, in seconds, averaged over all compute units.");
inline constexpr auto compute_occupancy = gauge("gpu_compute_occupancy_ratio", "ratio", "Resident warps or waves as a share of the maximum.");
inline constexpr auto compute_occupancy_seconds = counter("gpu_compute_occupancy_seconds_total", "seconds", "gpu_compute_occupancy_ratio integrated over observed time; rate() of this / rate(gpu_observed_seconds_total) is the true mean.", kFullPageOnly);
inline constexpr auto pipe_active = gauge("gpu_pipe_active_ratio", "ratio", "Share of cycles in which a pipe was active, by pipe.");
inline constexpr auto pipe_active_seconds = counter("gpu_pipe_active_seconds_total", "seconds", "Time in which a pipe was active, in seconds, by pipe.");
inline constexpr auto tensor_active = gauge("gpu_tensor_active_ratio", "ratio", "Share of cycles with tensor instructions, by kind; part of gpu_pipe_active_ratio of the tensor pipe. kind=fp16: NVIDIA's HMMA, which includes bf16, tf32 and, on some chips, fp8; int: IMMA; fp64: DFMA, or DMMA if the driver has no DFMA.", kFullPageOnly);
inline constexpr auto tensor_active_seconds = counter("gpu_tensor_active_seconds_total", "seconds", "Time with tensor instructions, in seconds, by kind as in gpu_tensor_active_ratio; part of gpu_pipe_active_seconds_total of the tensor pipe.", kFullPageOnly);
inline constexpr auto video_sessions = gauge("gpu_video_sessions", "", "Active sessions, by session: encode (of the video encoder), capture (of frame buffer capture).", kFullPageOnly);
inline constexpr auto video_frame_rate = gauge("gpu_video_session_frames_per_second", "frames_per_second", "Mean frame rate of all sessions in frames per second, by session.", kFullPageOnly);
inline constexpr auto video_latency = gauge("gpu_video_session_latency_seconds", "seconds", "Mean time for a frame of all sessions in seconds, by session.", kFullPageOnly);
inline constexpr auto utilization_max = gauge("gpu_utilization_max_ratio", "ratio", "Highest utilisation in the window.");
inline constexpr auto utilization_min = gauge("gpu_utilization_min_ratio", "ratio", "Lowest utilisation in the window.");

// Memory
inline constexpr auto memory_size = gauge("gpu_memory_size_bytes", "bytes", "Memory size in bytes. memory=vram: device memory; gtt: system memory mapped for the GPU; bar1: BAR1 aperture; unified: the host's memory, where the GPU has none of its own.");
inline constexpr auto memory_used = gauge("gpu_memory_used_bytes", "bytes", "Used memory in bytes, by memory.");
inline constexpr auto memory_free = gauge("gpu_memory_free_bytes", "bytes", "Free memory in bytes, by memory.");
inline constexpr auto memory_category_used = gauge("gpu_memory_category_used_bytes", "bytes", "Used device memory in bytes, by category of the driver; part of gpu_memory_used_bytes. AWS Neuron.", kFullPageOnly);
inline constexpr auto memory_reserved = gauge("gpu_memory_reserved_bytes", "bytes", "Memory reserved by the driver or the firmware, in bytes.");
inline constexpr auto protected_memory_size = gauge("gpu_protected_memory_size_bytes", "bytes", "Device memory that confidential computing protects, in bytes; 0 while it is off.", kFullPageOnly);
inline constexpr auto protected_memory_used = gauge("gpu_protected_memory_used_bytes", "bytes", "Used protected memory in bytes; part of gpu_protected_memory_size_bytes.", kFullPageOnly);
inline constexpr auto protected_memory_free = gauge("gpu_protected_memory_free_bytes", "bytes", "Free protected memory in bytes; part of gpu_protected_memory_size_bytes.", kFullPageOnly);
inline constexpr auto visible_memory_size = gauge("gpu_visible_memory_size_bytes", "bytes", "VRAM that the CPU can access, in bytes; part of gpu_memory_size_bytes.", kFullPageOnly);
inline constexpr auto visible_memory_used = gauge("gpu_visible_memory_used_bytes", "bytes", "Used VRAM that the CPU can access, in bytes; part of gpu_memory_used_bytes.", kFullPageOnly);
inline constexpr auto memory_bandwidth_utilization = gauge("gpu_memory_bandwidth_utilization_ratio", "ratio", "Memory traffic as a share of the memory's peak bandwidth.");
inline constexpr auto memory_bandwidth_utilization_seconds = counter("gpu_memory_bandwidth_utilization_seconds_total", "seconds", "gpu_memory_bandwidth_utilization_ratio integrated over observed time; rate() of this / rate(gpu_observed_seconds_total) is the true mean.", kFullPageOnly);

// Power and energy
inline constexpr auto power = gauge("gpu_power_watts", "watts", "Power of the board in watts, or of the package if the driver reports only that. An average if the driver averages; NVIDIA: power.draw.average (field 185), otherwise power.draw.");
inline constexpr auto power_instant = gauge("gpu_power_instant_watts", "watts", "Instantaneous power of the board in watts; NVIDIA: power.draw.instant (field 186).", kFullPageOnly);
inline constexpr auto power_rail = gauge("gpu_power_rail_watts", "watts", "Power of one rail or part of the board in watts, by rail.");
inline constexpr auto power_max = gauge("gpu_power_max_watts", "watts", "Highest power in the window, in watts.");
inline constexpr auto power_utilization = gauge("gpu_power_utilization_ratio", "ratio", "Mean power of the last minute as a share of the device's maximum. AWS Neuron, which does not report watts.");
inline constexpr auto power_min = gauge("gpu_power_min_watts", "watts", "Lowest power in the window, in watts.");
inline constexpr auto power_limit = gauge("gpu_power_limit_watts", "watts", "Power limit in watts. limit=enforced: in force now; requested: as set by the administrator; default: the card's default; min, max: the configurable range.", {Detail::Level::full, "limit", "enforced"});
inline constexpr auto edpp_multiplier = gauge("gpu_edpp_multiplier_ratio", "ratio", "Multiplier of the peak power that the board is designed for (EDPp), as set in the driver; 1: 100 %.", kFullPageOnly);
inline constexpr auto energy_joules = counter("gpu_energy_joules_total", "joules", "Energy used by the board in joules; rate() is the mean power as the board's meter has it.");
inline constexpr auto power_sensor_period = gauge("gpu_power_sensor_period_seconds", "seconds", "Time between two updates of a power reading in seconds, by source. samples: measured by the driver's timestamps; the others: published for the chip.", kFullPageOnly);
inline constexpr auto power_sensor_window = gauge("gpu_power_sensor_window_seconds", "seconds", "Time over which a power reading is averaged in seconds, by source, as published for the chip.", kFullPageOnly);
inline constexpr auto power_sensor_coverage = gauge("gpu_power_sensor_coverage_ratio", "ratio", "Share of the time that a power reading's windows hold, by source; below 1 the sensor does not see the rest.", kFullPageOnly);
inline constexpr auto energy_uncertainty = gauge("gpu_energy_uncertainty_ratio", "ratio", "Relative standard uncertainty (68 %; double it for 95 %) of an hour's energy by the source, if read once a second. Absent for chips whose sensor nobody has measured.", kFullPageOnly);
inline constexpr auto rail_energy_joules = counter("gpu_rail_energy_joules_total", "joules", "Energy used by one rail or part of the board in joules, by rail.");
inline constexpr auto voltage = gauge("gpu_voltage_volts", "volts", "Voltage in volts, by rail.");

// Temperature and cooling
inline constexpr auto temperature = gauge("gpu_temperature_celsius", "celsius", "Temperature in degrees Celsius. sensor=core: the GPU temperature of the vendor's tool (AMD: edge); hotspot: the hottest spot (AMD: junction).");
inline constexpr auto temperature_limit = gauge("gpu_temperature_limit_celsius", "celsius", "Temperature limit in degrees Celsius, by sensor and limit.");
inline constexpr auto temperature_margin = gauge("gpu_temperature_margin_celsius", "celsius", "Lowest limit of a sensor minus its temperature in degrees Celsius, or the margin reported by the driver.");
inline constexpr auto fan_speed = gauge("gpu_fan_speed_ratio", "ratio", "Fan drive as a share of its maximum.");
inline constexpr auto fan_rpm = gauge("gpu_fan_speed_rpm", "rpm", "Fan speed in revolutions per minute.");

// Clocks and performance
inline constexpr auto clock = gauge("gpu_clock_hertz", "hertz", "Clock frequency in hertz, by clock.");
inline constexpr auto clock_max = gauge("gpu_clock_max_hertz", "hertz", "Maximum clock frequency in hertz, by clock.");
inline constexpr auto clock_customer_boost = gauge("gpu_clock_customer_boost_hertz", "hertz", "Maximum boost clock frequency that is set for the customer's cards, in hertz, by clock.", kFullPageOnly);
inline constexpr auto cycles = counter("gpu_cycles_total", "", "Cycles of the multiprocessors' clock over observed time. rate() of this / rate(gpu_observed_seconds_total) is the exact mean clock. NVIDIA: Hopper and newer with driver 595.");
inline constexpr auto active_cycles = counter("gpu_active_cycles_total", "", "Cycles with resident work, averaged over all multiprocessors; part of gpu_cycles_total.", kFullPageOnly);
inline constexpr auto pipe_cycles = counter("gpu_pipe_cycles_total", "", "Cycles in which a pipe was active, averaged over all multiprocessors, by pipe; part of gpu_cycles_total.", kFullPageOnly);
inline constexpr auto tensor_cycles = counter("gpu_tensor_cycles_total", "", "Cycles with tensor instructions, averaged over all multiprocessors, by kind as in gpu_tensor_active_ratio.", kFullPageOnly);
inline constexpr auto tensor_peak_seconds = counter("gpu_tensor_peak_seconds_total", "seconds", "Time in seconds that the active cycles of the tensor cores take at the clock of gpu_peak_flops. rate() of this / rate(gpu_observed_seconds_total) is the used share of the peak (OFU). NVIDIA: gpu_pipe_cycles_total, before driver 595 the share of active cycles times the clock.");
inline constexpr auto performance_state = gauge("gpu_performance_state", "", "Performance state; 0 is the fastest.", kFullPageOnly);
inline constexpr auto peak_flops = gauge("gpu_peak_flops", "flops", "Peak dense compute rate in operations per second, by data type. source=table: from data sheets; formula: computed.", {Detail::Level::full, "dtype", "bf16"});
inline constexpr auto peak_memory_bandwidth = gauge("gpu_peak_memory_bandwidth_bytes_per_second", "bytes_per_second", "Peak memory bandwidth in bytes per second.", kFullPageOnly);

// Throttling
inline constexpr auto throttled = gauge("gpu_throttled", "", "1 while any reason of the cause limits the clocks, else 0: one series for each cause that the card reports. It is sampled once a second; for shares of time use rate(gpu_throttle_seconds_total[5m]), which also counts what lies between two scrapes.");
inline constexpr auto throttle_seconds = counter("gpu_throttle_seconds_total", "seconds", "Time in which any reason of the cause limited the clocks, in seconds; at most 1 s per second. rate() is the share of the time. Idle is not throttling.");
inline constexpr auto throttle_reason_active = gauge("gpu_throttle_reason_active", "", "1 while the throttle reason is active; reason is the vendor's name.", kFullPageOnly);
inline constexpr auto throttle_reason_seconds = counter("gpu_throttle_reason_seconds_total", "seconds", "Time in which the throttle reason was active, in seconds; reason is the vendor's name.");
inline constexpr auto clock_below_limit_seconds = counter("gpu_clock_below_limit_seconds_total", "seconds", "Time in which the graphics clock of a compute die was below the limit set by the host, in seconds, by xcd. AMD MI300 and later.", kFullPageOnly);
inline constexpr auto clock_below_limit_cause_seconds = counter("gpu_clock_below_limit_cause_seconds_total", "seconds", "Part of gpu_clock_below_limit_seconds_total due to a cause, in seconds, by xcd and cause. Causes may overlap.", kFullPageOnly);

// PCI Express and other links
inline constexpr auto pcie_link_generation = gauge("gpu_pcie_link_generation", "", "Current PCIe generation of the card's upstream link; lower when idle.");
inline constexpr auto pcie_link_lanes = gauge("gpu_pcie_link_lanes", "", "Current PCIe lanes of the card's upstream link.");
inline constexpr auto pcie_link_max_generation = gauge("gpu_pcie_link_max_generation", "", "Maximum PCIe generation of the link.");
inline constexpr auto pcie_link_max_lanes = gauge("gpu_pcie_link_max_lanes", "", "Maximum PCIe lanes of the link.");
inline constexpr auto pcie_received_bytes = counter("gpu_pcie_received_bytes_total", "bytes", "Bytes received over PCIe.");
inline constexpr auto pcie_transmitted_bytes = counter("gpu_pcie_transmitted_bytes_total", "bytes", "Bytes transmitted over PCIe.");
inline constexpr auto pcie_replays = counter("gpu_pcie_replays_total", "", "Retransmitted PCIe packets.");
inline constexpr auto pcie_errors = counter("gpu_pcie_errors_total", "", "PCIe errors, by severity and kind.", {Detail::Level::nonzero, "severity", "fatal"});
inline constexpr auto pcie_link_events = counter("gpu_pcie_link_events_total", "", "PCIe link events that accompany errors, by event. Do not add them to gpu_pcie_errors_total: errors cause some of them.", kFullPageOnly);
inline constexpr auto interconnect_received_bytes = counter("gpu_interconnect_received_bytes_total", "bytes", "Bytes received over all links of the kind. kind=nvlink, xgmi, xelink: to other GPUs; c2c: to the CPU of the module.");
inline constexpr auto interconnect_transmitted_bytes = counter("gpu_interconnect_transmitted_bytes_total", "bytes", "Bytes transmitted over all links of the kind, as in gpu_interconnect_received_bytes_total.");
inline constexpr auto interconnect_errors = counter("gpu_interconnect_errors_total", "", "Errors on all links of the kind, by error. Errors that forward error correction repaired are not included.");
inline constexpr auto interconnect_links = gauge("gpu_interconnect_links", "", "Number of the device's links of the kind, as in gpu_interconnect_received_bytes_total.");
inline constexpr auto interconnect_links_up = gauge("gpu_interconnect_links_up", "", "Number of the device's links of the kind that are up.");
inline constexpr auto interconnect_link_speed = gauge("gpu_interconnect_link_speed_bytes_per_second", "bytes_per_second", "Data rate of a link of the kind in bytes per second and direction: the rate that most of the device's links which are up have.", kFullPageOnly);
inline constexpr auto interconnect_bit_error_ratio = gauge("gpu_interconnect_bit_error_ratio", "ratio", "Highest bit error ratio of the device's links to other GPUs, by error: effective (after forward error correction) or symbol (after all corrections of the link).");
inline constexpr auto interconnect_fec_history = counter("gpu_interconnect_fec_history_total", "", "Symbol errors repaired by forward error correction on all links of the kind, by bin of the driver's histogram (0 to 15). Higher bins hold blocks with more errors.", kFullPageOnly);

// Single links; the sums are in the interconnect families. NVLink: those that have something to say, or with `links: each` all
inline constexpr auto link_up = gauge("gpu_link_up", "", "1 while the link is up. A link that is active without traffic is not up.");
inline constexpr auto link_speed = gauge("gpu_link_speed_bytes_per_second", "bytes_per_second", "Data rate of one link in bytes per second and direction.");
inline constexpr auto link_received_bytes = counter("gpu_link_received_bytes_total", "bytes", "Bytes received over one link.");
inline constexpr auto link_transmitted_bytes = counter("gpu_link_transmitted_bytes_total", "bytes", "Bytes transmitted over one link.");
inline constexpr auto link_errors = counter("gpu_link_errors_total", "", "Errors on one link, by error.", kWhileNonzero);
inline constexpr auto link_bit_error_ratio = gauge("gpu_link_bit_error_ratio", "ratio", "Bit error ratio of one link, by error as in gpu_interconnect_bit_error_ratio.");

// Memory errors and events
inline constexpr auto memory_errors = counter("gpu_memory_errors_total", "", "Memory errors since the driver was loaded, by severity and location.");
inline constexpr auto memory_lifetime_errors = counter("gpu_memory_lifetime_errors_total", "", "Memory errors over the card's lifetime, by severity and location.");
inline constexpr auto memory_unrepairable = gauge("gpu_memory_unrepairable", "", "1 if the memory has errors that neither spare rows nor spare channels can repair. Replace the card.");
inline constexpr auto repair_pending = gauge("gpu_repair_pending", "", "1 if the next reset will repair a part of the device with spare hardware, by part: channel (of the memory), tpc (texture processing cluster).");
inline constexpr auto sram_threshold_exceeded = gauge("gpu_sram_error_threshold_exceeded", "", "1 if the uncorrected errors of the device's SRAM exceed the driver's threshold. Replace the card.");
inline constexpr auto sram_lifetime_errors = counter("gpu_sram_lifetime_errors_total", "", "Uncorrected SRAM errors since the card was made, by unit; part of gpu_memory_lifetime_errors_total.", kFullPageOnly);
inline constexpr auto hardware_errors = counter("gpu_hardware_errors_total", "", "Errors in blocks other than memory since the driver was loaded, by block and severity.", {Detail::Level::nonzero, "severity", "uncorrected"});
inline constexpr auto retired_pages = gauge("gpu_retired_pages", "", "Retired memory pages, by cause.");
inline constexpr auto retired_pages_pending = gauge("gpu_retired_pages_pending", "", "1 if the next reset will retire a memory page.");
inline constexpr auto remapped_rows = gauge("gpu_remapped_rows", "", "Memory rows remapped to spare rows, by cause.");
inline constexpr auto remapped_rows_inactive = gauge("gpu_remapped_rows_inactive", "", "Remappings of memory rows that are recorded but not in effect, by cause as in gpu_remapped_rows.");
inline constexpr auto remapped_banks = gauge("gpu_remapped_banks", "", "Memory banks remapped to spare banks, by state: active (in effect), inactive (recorded only), pending (in effect after the next reset).");
inline constexpr auto bank_remap_groups = gauge("gpu_bank_remap_groups", "", "Groups of memory banks, by availability of spare banks: max (all are left), none.", kFullPageOnly);
inline constexpr auto row_remap_pending = gauge("gpu_row_remap_pending", "", "1 if the next reset will remap a memory row.");
inline constexpr auto row_remap_failed = gauge("gpu_row_remap_failed", "", "1 if a memory row could not be remapped. Replace the card.");
inline constexpr auto row_remap_banks = gauge("gpu_row_remap_banks", "", "Memory banks, by availability of spare rows.", kFullPageOnly);
inline constexpr auto xid_errors = counter("gpu_xid_errors_total", "", "NVIDIA driver errors, by XID code.", {Detail::Level::nonzero, "xid", "other"});
inline constexpr auto xid_last_timestamp = gauge("gpu_xid_last_timestamp_seconds", "seconds", "Unix time of the last event with the XID code.");
inline constexpr auto events = counter("gpu_events_total", "", "Device events, by type.", {Detail::Level::nonzero, "event", "bus_lost"});
inline constexpr auto operational_events = counter("gpu_operational_events_total", "", "GPU Operational Events of the NVIDIA driver, by module and code of NVIDIA's catalogue, and severity; severity=simulated: made by a test of the driver. A series begins with its first event. Absent if the driver has no such events or does not permit their reading.");
inline constexpr auto operational_event_overflows = counter("gpu_operational_event_overflows_total", "", "GPU Operational Events that report the loss of others before them. Absent if the driver has no such events or does not permit their reading.");
inline constexpr auto recovery_action = gauge("gpu_recovery_action", "", "1 for the recovery action that the driver requests. action=other: unknown to this version. On the standard page action=none is always there and the others while they hold: to average or to compare with 0, use action=none.", {Detail::Level::nonzero, "action", "none"});
inline constexpr auto fabric_state = gauge("gpu_fabric_state", "", "1 for the state of the device's registration with the fabric manager. state=failed: ended with an error. On the standard page state=completed is always there and the others while they hold: to average or to compare with 0, use state=completed.", {Detail::Level::nonzero, "state", "completed"});
inline constexpr auto fabric_health = gauge("gpu_fabric_health", "", "1 for the fabric's health as reported by the device. On the standard page state=healthy is always there and the others while they hold: to average or to compare with 0, use state=healthy.", {Detail::Level::nonzero, "state", "healthy"});
inline constexpr auto fabric_condition = gauge("gpu_fabric_condition", "", "1 for each trouble that the device reports of its fabric, by condition. condition=no_partition, partition_unassigned: the node is not assigned to a partition, which is usual before it is given work.", kWhileNonzero);
inline constexpr auto fabric_info = gauge("gpu_fabric_info", "", "Fabric in which the device is registered: clique, and cluster_uuid if the cluster has one; always 1. Absent until registration has succeeded.", kFullPageOnly);
inline constexpr auto platform_info = gauge("gpu_platform_info", "", "Place of the device in its rack, as labels; always 1. chassis_serial: serial number of the chassis; slot: its slot, switches included; tray: its compute tray; host: the node in the slot; module: the GPU in the node.");
inline constexpr auto inventory_info = gauge("gpu_inventory_info", "", "Further static facts of the device, as labels that the driver reports; always 1.", kFullPageOnly);
inline constexpr auto topology_info = gauge("gpu_topology_info", "", "Path between the device and a peer GPU (uuid) of the machine; always 1. path=link: NVLink or xGMI; pix: one PCIe switch; pxb: several; phb: one host bridge; node: one NUMA node; sys: between NUMA nodes.", kFullPageOnly);
inline constexpr auto license_state = gauge("gpu_license_state", "", "1 for the state of the vGPU licence. On the standard page state=licensed is always there and the others while they hold: to average or to compare with 0, use state=licensed.", {Detail::Level::nonzero, "state", "licensed"});

// The daemon's judgement, exporter/health
inline constexpr auto health = gauge("gpu_health", "", "1 for the state of the device's health: ok, degraded, failed, or unknown while the device is not read or its driver is closed on request. docs/conditions.md lists the conditions. Judged once a second by the running daemon, not by --once.");
inline constexpr auto health_reason = gauge("gpu_health_reason", "", "1 while a reason degrades or fails the device's health, by severity and by the action that helps; absent otherwise. docs/conditions.md lists the reasons.");
inline constexpr auto health_advisory_info = gauge("gpu_health_advisory_info", "", "Advisory that concerns the device's model and driver version, by name; always 1. An advisory is information and changes no state. docs/conditions.md lists the advisories.", kFullPageOnly);

// Results of active benchmarks: gpumeter-benchmark, or imported
inline constexpr auto benchmark_flops = gauge("gpu_benchmark_flops", "flops", "Measured rate of matrix multiplication in operations per second, by data type and by the library that computed (backend).");
inline constexpr auto benchmark_memory_bandwidth = gauge("gpu_benchmark_memory_bandwidth_bytes_per_second", "bytes_per_second", "Measured bandwidth of the device's memory in bytes per second, by operation: read, write, copy, or triad (two reads, one write). Read and written bytes are added.");
inline constexpr auto benchmark_transfer = gauge("gpu_benchmark_transfer_bytes_per_second", "bytes_per_second", "Measured rate of transfers in bytes per second, by direction: host_to_device, device_to_host, or device_to_device.");
inline constexpr auto benchmark_result = gauge("gpu_benchmark_result", "", "Result of a benchmark that has no family of its own, in the unit of the label unit.");
inline constexpr auto benchmark_failed = gauge("gpu_benchmark_failed", "", "1 if the device computed a wrong result or could not complete its last benchmark.");
inline constexpr auto benchmark_timestamp = gauge("gpu_benchmark_timestamp_seconds", "seconds", "Unix time of the device's last benchmark.");

// Partitions of a device, with the device's labels and `partition`. Do not add them to the device's own families.
inline constexpr auto partition_info = gauge("gpu_partition_info", "", "Static facts of a partition, as labels; always 1. NVIDIA: a GPU instance with several compute instances has one series per compute_instance, each with its own mig_uuid and compute_units.");
inline constexpr auto partition_utilization = gauge("gpu_partition_utilization_ratio", "ratio", "Share of time in which the partition was busy. AMD: the busiest compute die; NVIDIA: the graphics engine (GPM).");
inline constexpr auto partition_busy_seconds = counter("gpu_partition_busy_seconds_total", "seconds", "Time in which the partition was busy, in seconds, as in gpu_partition_utilization_ratio.");
inline constexpr auto partition_engine_utilization = gauge("gpu_partition_engine_utilization_ratio", "ratio", "Share of time in which an engine of the partition was busy, by engine.");
inline constexpr auto partition_engine_busy_seconds = counter("gpu_partition_engine_busy_seconds_total", "seconds", "Time in which an engine of the partition was busy, in seconds, by engine.");
inline constexpr auto partition_compute_active = gauge("gpu_partition_compute_active_ratio", "ratio", "Share of the partition's compute units with resident work.");
inline constexpr auto partition_compute_active_seconds = counter("gpu_partition_compute_active_seconds_total", "seconds", "Time with resident work, in seconds, averaged over the partition's compute units.");
inline constexpr auto partition_compute_occupancy = gauge("gpu_partition_compute_occupancy_ratio", "ratio", "Resident warps or waves of the partition as a share of the maximum.");
inline constexpr auto partition_compute_occupancy_seconds = counter("gpu_partition_compute_occupancy_seconds_total", "seconds", "gpu_partition_compute_occupancy_ratio integrated over observed time.", kFullPageOnly);
inline constexpr auto partition_pipe_active = gauge("gpu_partition_pipe_active_ratio", "ratio", "Share of the partition's cycles in which a pipe was active, by pipe.");
inline constexpr auto partition_pipe_active_seconds = counter("gpu_partition_pipe_active_seconds_total", "seconds", "Time in which a pipe of the partition was active, in seconds, by pipe.");
inline constexpr auto partition_tensor_active = gauge("gpu_partition_tensor_active_ratio", "ratio", "Share of the partition's cycles with tensor instructions, by kind as in gpu_tensor_active_ratio; part of the tensor pipe's.", kFullPageOnly);
inline constexpr auto partition_tensor_active_seconds = counter("gpu_partition_tensor_active_seconds_total", "seconds", "Time with tensor instructions in the partition, in seconds, by kind as in gpu_tensor_active_ratio; part of the tensor pipe's.", kFullPageOnly);
inline constexpr auto partition_memory_bandwidth_utilization = gauge("gpu_partition_memory_bandwidth_utilization_ratio", "ratio", "Memory traffic of the partition as a share of its memory's peak bandwidth.");
inline constexpr auto partition_memory_bandwidth_utilization_seconds = counter("gpu_partition_memory_bandwidth_utilization_seconds_total", "seconds", "gpu_partition_memory_bandwidth_utilization_ratio integrated over observed time.", kFullPageOnly);
inline constexpr auto partition_memory_size = gauge("gpu_partition_memory_size_bytes", "bytes", "Memory that the partition can allocate, in bytes.");
inline constexpr auto partition_memory_used = gauge("gpu_partition_memory_used_bytes", "bytes", "Used memory of the partition in bytes.");
inline constexpr auto partition_memory_free = gauge("gpu_partition_memory_free_bytes", "bytes", "Free memory of the partition in bytes.");
inline constexpr auto partition_memory_reserved = gauge("gpu_partition_memory_reserved_bytes", "bytes", "Memory of the partition reserved by the driver, in bytes.");
inline constexpr auto partition_memory_errors = counter("gpu_partition_memory_errors_total", "", "Memory errors of the partition since the driver was loaded, by severity and location; part of gpu_memory_errors_total.");
inline constexpr auto partition_peak_flops = gauge("gpu_partition_peak_flops", "flops", "Peak dense compute rate of the partition in operations per second, by data type. source=table: from data sheets; formula: computed.", {Detail::Level::full, "dtype", "bf16"});
inline constexpr auto partition_xid_errors = counter("gpu_partition_xid_errors_total", "", "NVIDIA driver errors attributed to the partition, by XID code; part of gpu_xid_errors_total. XID codes caused by programs have their own series; xid=other counts all others.", {Detail::Level::nonzero, "xid", "other"});

// Groups of processes
inline constexpr auto workload_memory_used = gauge("gpu_workload_memory_used_bytes", "bytes", "Device memory held by the workload's processes, in bytes.");
inline constexpr auto workload_memory_peak = gauge("gpu_workload_memory_peak_bytes", "bytes", "Highest device memory that the workload's processes held at a sample since gpumeter first saw the workload, in bytes.");
inline constexpr auto workload_busy_seconds = counter("gpu_workload_busy_seconds_total", "seconds", "Time in which work of the workload's processes was on the device, in seconds, summed over the processes.");
inline constexpr auto workload_energy = counter("gpu_workload_energy_joules_total", "joules", "Device energy attributed to the workload by its share, in joules. workload=unattributed holds the energy that no process used, so that the sum is the device's.");
inline constexpr auto workload_idle_energy = counter("gpu_workload_idle_energy_joules_total", "joules", "Part of gpu_workload_energy_joules_total that the device uses without activity, in joules; divided by what each workload holds. Absent until gpu_idle_power_watts is known.", kFullPageOnly);
inline constexpr auto idle_power = gauge("gpu_idle_power_watts", "watts", "Power of the device in the last times without activity, in watts. Absent until there was such a time.", kFullPageOnly);
inline constexpr auto workload_share = gauge("gpu_workload_share_ratio", "ratio", "Workload's share of the device: by activity of the last minute, or by what it holds if no workload was active. The shares of a device sum to 1.");
inline constexpr auto workload_info = gauge("gpu_workload_info", "", "Facts of the workload, as labels; always 1. Join by kind and workload.");
inline constexpr auto workload_cpu_seconds = counter("gpu_workload_cpu_seconds_total", "seconds", "CPU time of the workload's cgroup, in seconds.");
inline constexpr auto workload_host_energy = counter("gpu_workload_host_energy_joules_total", "joules", "Energy of machine_energy_joules_total attributed to the workload by its cgroup's part of the machine's CPU time, in joules; idle CPU time is nobody's. Absent unless machine.workload_energy.", kFullPageOnly);
inline constexpr auto allocation_info = gauge("gpu_allocation_info", "", "GPU that was given to the workload, whether or not a process of it runs; always 1. source: who gave it. partition: only this part of the GPU was given.");
inline constexpr auto allocation_start = gauge("gpu_allocation_start_timestamp_seconds", "seconds", "Unix time at which the GPU was given to the workload. Absent if the source does not report it.");
inline constexpr auto allocated_idle_seconds = counter("gpu_allocated_idle_seconds_total", "seconds", "Time in which the GPU was given to the workload and idle, in seconds: its busy share was below allocations.idle_percent. If the GPU is given to several workloads, the workload's own busy time counts.");
inline constexpr auto process_memory_used = gauge("gpu_process_memory_used_bytes", "bytes", "Device memory held by the process, in bytes.");
inline constexpr auto process_busy_seconds = counter("gpu_process_busy_seconds_total", "seconds", "Time in which work of the process was on the device, in seconds.");

// The host of the devices
inline constexpr auto host_pressure_seconds = counter("gpu_host_pressure_seconds_total", "seconds", "Time in which tasks of the host waited for a resource (memory or io), in seconds. waiting=some: at least one task; full: all tasks at once. From /proc/pressure.");
inline constexpr auto machine_power = gauge("machine_power_watts", "watts", "Power of a part of the machine in watts, from the first readable source, so that the sum counts nothing twice. domain=cpu: a processor package, with the GPU in it if it has one; memory: its DRAM; socket: both. Of a source that counts energy, the mean since the reading before.", kFullPageOnly);
inline constexpr auto machine_energy = counter("machine_energy_joules_total", "joules", "Energy of the parts of machine_power_watts in joules, counted while gpumeter runs. source=powercap or cray: counted by the hardware; acpi or hsmp: integrated by gpumeter.", kFullPageOnly);
inline constexpr auto machine_rail_power = gauge("machine_power_rail_watts", "watts", "Power of another sensor of the machine in watts, by source and rail: parts of a package, modules and nodes with their GPUs, power supplies. They overlap: do not add rails, and add none to machine_power_watts or gpu_power_watts.", kFullPageOnly);
inline constexpr auto machine_rail_energy = counter("machine_rail_energy_joules_total", "joules", "Energy of the rails of machine_power_rail_watts in joules, counted while gpumeter runs.", kFullPageOnly);

// Jobs, each with `run` and `user`. A device's series never has these labels.
inline constexpr auto ml_steps = counter("ml_steps_total", "", "Completed steps, summed over the run's processes, by split.");
inline constexpr auto ml_step = gauge("ml_step", "", "Current step number of the run: the highest of its live processes.");
inline constexpr auto ml_samples = counter("ml_samples_total", "", "Processed samples, summed over the run's processes, by split.");
inline constexpr auto ml_tokens = counter("ml_tokens_total", "", "Processed tokens, summed over the run's processes, by split and kind.");
inline constexpr auto ml_model_flops = counter("ml_model_flops_total", "flops", "Floating-point operations of the model as counted by the job, summed over its processes.");
inline constexpr auto ml_phase_seconds = counter("ml_phase_seconds_total", "seconds", "Time spent in a phase, in seconds, summed over the run's processes.");
inline constexpr auto ml_phases = counter("ml_phases_total", "", "Completed passes through a phase, summed over the run's processes.");
inline constexpr auto ml_step_duration = histogram("ml_step_duration_seconds", "seconds", "Duration of a step in seconds, by split.");
inline constexpr auto ml_inference_duration = histogram("ml_inference_duration_seconds", "seconds", "Duration of an inference request in seconds.");
inline constexpr auto ml_time_to_first_token = histogram("ml_time_to_first_token_seconds", "seconds", "Time from a request to its first token, in seconds.");
inline constexpr auto ml_inter_token_latency = histogram("ml_inter_token_latency_seconds", "seconds", "Time between consecutive tokens of an answer, in seconds.");
inline constexpr auto ml_loss = gauge("ml_loss", "", "Last reported loss, by split.");
inline constexpr auto ml_eval_value = gauge("ml_eval_value", "", "Result of the last evaluation, by metric.");
inline constexpr auto ml_eval_best_value = gauge("ml_eval_best_value", "", "Best evaluation result so far, by metric. The highest, or the lowest if the job sends direction:min or the metric is a loss or an error.");
inline constexpr auto ml_target_value = gauge("ml_target_value", "", "Evaluation result that the run is to reach, by metric.");
inline constexpr auto ml_custom = gauge("ml_custom", "", "Last value of a custom scalar. metric is the name given by the job, such as learning_rate.");
inline constexpr auto ml_batch_size = gauge("ml_batch_size", "", "Last reported batch size.");
inline constexpr auto ml_world_size = gauge("ml_world_size", "", "Last reported number of processes of the run on all machines.");
inline constexpr auto ml_run_start_timestamp = gauge("ml_run_start_timestamp_seconds", "seconds", "Unix time of the run's start: the time given by run_start, or the arrival of the first message if there was no run_start.");
inline constexpr auto ml_run_stop_timestamp = gauge("ml_run_stop_timestamp_seconds", "seconds", "Unix time of the run's end, by status: success, aborted, or lost if a process ended without run_stop. Absent until all processes of the run have ended.");
inline constexpr auto ml_run_time = gauge("ml_run_time_seconds", "seconds", "Time from the run's start to its end, or to now while it runs, in seconds. Without run_start and run_stop, the time to the last message.");
inline constexpr auto ml_time_to_solution = gauge("ml_time_to_solution_seconds", "seconds", "Time from the run's start to the first evaluation that met the target, in seconds, by metric. Absent until then, and if an evaluation before the daemon's start may have met the target.");
inline constexpr auto ml_run_restarts = counter("ml_run_restarts_total", "", "Restarts of the run: it began again after all its processes had ended, or reported a restart.");
inline constexpr auto ml_lost_steps = counter("ml_lost_steps_total", "", "Steps that were repeated after a restart.");
inline constexpr auto ml_last_update_timestamp = gauge("ml_last_update_timestamp_seconds", "seconds", "Unix time of the run's last message.");
inline constexpr auto ml_energy = counter("ml_energy_joules_total", "joules", "GPU energy attributed to the run by its share of each GPU, in joules. Includes GPUs that ml_run_gpu_info marks as guesses.");
inline constexpr auto ml_gpu_idle_allocated_seconds = counter("ml_gpu_idle_allocated_seconds_total", "seconds", "Time in which a GPU held by the run was idle, in seconds.");
inline constexpr auto ml_run_info = gauge("ml_run_info", "", "Facts reported by the run, as labels; always 1: framework, version, model, precision, sharding, and the numbers of data-, tensor- and pipeline-parallel processes.");
inline constexpr auto ml_run_gpu_info = gauge("ml_run_gpu_info", "", "GPU used by processes of the run; always 1. Join by uuid. source=process: the process reports the run, or is an ancestor or descendant of one that does. source=workload: a guess, because the two share only the user and the Slurm job, pod, container or unit. source=nccl: one of NCCL's ranks, of a run that no process reports.");
inline constexpr auto ml_allocator_memory = gauge("ml_allocator_memory_bytes", "bytes", "Device memory of the framework's allocator, in bytes, summed over the run's live processes. state=allocated: in use by tensors; reserved: taken from the device; peak: the highest allocated.");
inline constexpr auto ml_out_of_memory = counter("ml_out_of_memory_errors_total", "", "Allocations of device memory that failed, as counted by the framework, summed over the run's processes.");
inline constexpr auto ml_throttled_seconds = counter("ml_throttled_seconds_total", "seconds", "Time in which a GPU of the run was throttled, in seconds, summed over the run's GPUs, by cause as in gpu_throttle_seconds_total.");
inline constexpr auto ml_clock_lost_seconds = counter("ml_clock_lost_seconds_total", "seconds", "Time that the run's GPUs lost to clocks below the maximum while they were throttled, in seconds: the missing share of the clock integrated over that time and summed over the run's GPUs.");
inline constexpr auto ml_profiles = counter("ml_profiles_total", "", "Profiles of the run, by trigger (request, or the name of the condition) and by status.");
inline constexpr auto ml_profile_last_timestamp = gauge("ml_profile_last_timestamp_seconds", "seconds", "Unix time of the run's last profile, by trigger.");
inline constexpr auto ml_nccl_ranks = gauge("ml_nccl_ranks", "", "Ranks of the run's NCCL communicators as NCCL reports them on all machines, by state: ok, missing, dead, or error.");
inline constexpr auto ml_nccl_collectives = counter("ml_nccl_collectives_total", "", "Collective operations launched by the run's ranks of this machine, by op.");
inline constexpr auto ml_nccl_rank_lag = gauge("ml_nccl_rank_lag", "", "Highest difference of launched collective operations between two ranks of a communicator.");
inline constexpr auto ml_nccl_stalled_seconds = gauge("ml_nccl_stalled_seconds", "seconds", "Time for which no rank of the run has launched a collective operation, in seconds. A rank launches before it computes: only together with busy GPUs of low power is it a stall.");
inline constexpr auto ml_nccl_stalled_rank = gauge("ml_nccl_stalled_rank", "", "1 for a rank that stands still behind the others, is missing, or is dead, by rank, host and state; absent otherwise.");
inline constexpr auto ml_nccl_bus_bandwidth = gauge("ml_nccl_bus_bandwidth_bytes_per_second", "bytes_per_second", "Bus bandwidth of the GPU's NCCL operations in bytes per second: the geometric mean since the last dump of NCCL Inspector, by op, by size of the messages, and by scope: node or network. Inspector counts no operations: groups of ranks and algorithms that share the labels weigh the same.");
inline constexpr auto ml_nccl_operation_duration = gauge("ml_nccl_operation_duration_seconds", "seconds", "Duration of the GPU's NCCL operations in seconds: the mean since the last dump of NCCL Inspector, with the labels of ml_nccl_bus_bandwidth_bytes_per_second.");
inline constexpr auto ml_nccl_recorded_operations = counter("ml_nccl_recorded_operations_total", "", "Operations that NCCL Inspector recorded on the GPU since the job's start, by kind: collective or point_to_point. Absent unless the job sets NCCL_INSPECTOR_PROM_DUMP_STATS.");
inline constexpr auto ml_nccl_lost_operations = counter("ml_nccl_lost_operations_total", "", "Recorded operations that NCCL Inspector overwrote before a dump, by kind. They are missing in its means.");
inline constexpr auto ml_nccl_dump_timestamp = gauge("ml_nccl_dump_timestamp_seconds", "seconds", "Unix time of NCCL Inspector's last dump for the GPU.");
inline constexpr auto ml_flight_recorder_collective = gauge("ml_flight_recorder_collective", "", "Sequence number of the rank's last collective operation in a process group at the time of PyTorch's dump, by state: enqueued, started, or completed. A rank that enqueued fewer operations than others of the group stands behind.");
inline constexpr auto ml_flight_recorder_dump_timestamp = gauge("ml_flight_recorder_dump_timestamp_seconds", "seconds", "Unix time of the rank's dump by PyTorch's flight recorder.");
inline constexpr auto ml_nccl_last_success_timestamp = gauge("ml_nccl_last_success_timestamp_seconds", "seconds", "Unix time of NCCL's last complete answer for the run.");

// Model servers, read from their own metrics pages. Labels: server (its kind) and port, host for a named target; the workload is in ml_server_info
inline constexpr auto ml_server_up = gauge("ml_server_up", "", "1 if the last read of the server's metrics page succeeded.");
inline constexpr auto ml_server_tokens = counter("ml_server_tokens_total", "", "Tokens processed by the server, by kind: input or output.");
inline constexpr auto ml_server_requests = counter("ml_server_requests_total", "", "Requests completed by the server.");
inline constexpr auto ml_server_requests_running = gauge("ml_server_requests_running", "", "Requests that the server computes at present.");
inline constexpr auto ml_server_requests_waiting = gauge("ml_server_requests_waiting", "", "Requests that wait in the server's queue.");
inline constexpr auto ml_server_time_to_first_token = histogram("ml_server_time_to_first_token_seconds", "seconds", "Time from a request to its first token in seconds, with the server's own buckets.");
inline constexpr auto ml_server_cache_utilization = gauge("ml_server_cache_utilization_ratio", "ratio", "Used share of the server's memory for keys and values of attention.");
inline constexpr auto ml_server_info = gauge("ml_server_info", "", "Facts of the server, as labels; always 1. gpu, uuid: a GPU that the server's processes use, one series for each.");
inline constexpr auto ml_server_energy = counter("ml_server_energy_joules_total", "joules", "GPU energy attributed to the server's processes by their share of each GPU, in joules.");
// clang-format on

}  // namespace gpumeter::catalog
