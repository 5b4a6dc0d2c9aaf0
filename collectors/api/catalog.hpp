#pragma once

#include "collectors/api/descriptor.hpp"

/// Every family of devices and jobs once, for all vendors: name, help, unit, type. Names are a contract with
/// dashboards and alerts: a rename needs a line in CHANGELOG.md. Their rules are checked while compiling.
namespace gpumeter::catalog {

// A family that breaks a rule does not compile: "subexpression is not a constant expression".
consteval MetricDescriptor checked(MetricDescriptor metric) {
  return is_valid(metric) ? metric : throw metric.name;
}
consteval MetricDescriptor gauge(std::string_view name, std::string_view unit, std::string_view help) {
  return checked({name, help, unit, MetricType::gauge});
}
consteval MetricDescriptor counter(std::string_view name, std::string_view unit, std::string_view help) {
  return checked({name, help, unit, MetricType::counter});
}
consteval MetricDescriptor histogram(std::string_view name, std::string_view unit, std::string_view help) {
  return checked({name, help, unit, MetricType::histogram});
}

// clang-format off
// The device itself
inline constexpr auto info = gauge("gpu_info", "", "What the device is; always 1. Join by uuid.");
inline constexpr auto up = gauge("gpu_up", "", "1 if the device is being read, 0 if it is lost or its driver hangs.");
inline constexpr auto suspended = gauge("gpu_suspended", "", "1 if the device sleeps (runtime power management); it is not woken to be read.");
inline constexpr auto observed_seconds = counter("gpu_observed_seconds_total", "seconds", "Time over which the integrated counters of this tier are complete; rate(x) / rate of this is the true mean of x.");
inline constexpr auto meter_source_info = gauge("gpu_meter_source_info", "", "Where a counter comes from: the hardware's own, or integrated by the daemon; always 1.");
inline constexpr auto mode = gauge("gpu_mode", "", "1 for the state that holds of each mode.");

// Utilisation
inline constexpr auto utilization = gauge("gpu_utilization_ratio", "ratio", "Share of time in which at least one kernel or engine job was resident, as the driver averaged it last.");
inline constexpr auto busy_seconds = counter("gpu_busy_seconds_total", "seconds", "Time in which at least one kernel or engine job was resident. NVIDIA: utilization.gpu, by the driver's sample buffer; AMD: gpu_busy_percent of the SMU, or gfx_activity.");
inline constexpr auto engine_utilization = gauge("gpu_engine_utilization_ratio", "ratio", "Share of time in which an engine was busy.");
inline constexpr auto engine_busy_seconds = counter("gpu_engine_busy_seconds_total", "seconds", "Time in which an engine was busy.");
inline constexpr auto memory_controller_utilization = gauge("gpu_memory_controller_utilization_ratio", "ratio", "Share of time in which the memory controller moved data.");
inline constexpr auto memory_controller_busy_seconds = counter("gpu_memory_controller_busy_seconds_total", "seconds", "Time in which the memory controller moved data.");
inline constexpr auto compute_active = gauge("gpu_compute_active_ratio", "ratio", "Share of the compute units that had work.");
inline constexpr auto compute_active_seconds = counter("gpu_compute_active_seconds_total", "seconds", "Time with work, averaged over all compute units.");
inline constexpr auto compute_occupancy = gauge("gpu_compute_occupancy_ratio", "ratio", "Resident warps or waves against the most that fit.");
inline constexpr auto compute_occupancy_seconds = counter("gpu_compute_occupancy_seconds_total", "seconds", "gpu_compute_occupancy_ratio integrated over observed time; rate() of this / rate(gpu_observed_seconds_total) is its true mean.");
inline constexpr auto pipe_active = gauge("gpu_pipe_active_ratio", "ratio", "Share of cycles in which a pipe was active.");
inline constexpr auto pipe_active_seconds = counter("gpu_pipe_active_seconds_total", "seconds", "Time in which a pipe was active.");
inline constexpr auto tensor_active = gauge("gpu_tensor_active_ratio", "ratio", "Share of cycles with tensor instructions of one class; parts of gpu_pipe_active_ratio of the tensor pipe. kind=fp16: NVIDIA's HMMA, which is bf16, tf32 and, on some chips, fp8 too; int: IMMA; fp64: DFMA, or DMMA where the driver has no DFMA.");
inline constexpr auto tensor_active_seconds = counter("gpu_tensor_active_seconds_total", "seconds", "Time with tensor instructions of one class, by kind as in gpu_tensor_active_ratio; parts of gpu_pipe_active_seconds_total of the tensor pipe.");
inline constexpr auto utilization_max = gauge("gpu_utilization_max_ratio", "ratio", "Highest utilisation of the window.");
inline constexpr auto utilization_min = gauge("gpu_utilization_min_ratio", "ratio", "Lowest utilisation of the window.");

// Memory
inline constexpr auto memory_size = gauge("gpu_memory_size_bytes", "bytes", "Size of a memory: vram, gtt (system memory mapped for the GPU), bar1.");
inline constexpr auto memory_used = gauge("gpu_memory_used_bytes", "bytes", "Memory in use.");
inline constexpr auto memory_free = gauge("gpu_memory_free_bytes", "bytes", "Memory not in use.");
inline constexpr auto memory_reserved = gauge("gpu_memory_reserved_bytes", "bytes", "Memory that the driver or the firmware keeps for itself.");
inline constexpr auto visible_memory_size = gauge("gpu_visible_memory_size_bytes", "bytes", "Part of the vram that the CPU can reach; a part of gpu_memory_size_bytes.");
inline constexpr auto visible_memory_used = gauge("gpu_visible_memory_used_bytes", "bytes", "Part of the vram in use that the CPU can reach; a part of gpu_memory_used_bytes.");
inline constexpr auto memory_bandwidth_utilization = gauge("gpu_memory_bandwidth_utilization_ratio", "ratio", "Memory traffic against the most the memory can do.");
inline constexpr auto memory_bandwidth_utilization_seconds = counter("gpu_memory_bandwidth_utilization_seconds_total", "seconds", "gpu_memory_bandwidth_utilization_ratio integrated over observed time; rate() of this / rate(gpu_observed_seconds_total) is its true mean.");
inline constexpr auto memory_read_bytes = counter("gpu_memory_read_bytes_total", "bytes", "Bytes read from the device's memory.");
inline constexpr auto memory_written_bytes = counter("gpu_memory_written_bytes_total", "bytes", "Bytes written to the device's memory.");

// Power and energy
inline constexpr auto power = gauge("gpu_power_watts", "watts", "Power of the board (of the package where that is all there is), as averaged by the driver where it averages.");
inline constexpr auto power_instant = gauge("gpu_power_instant_watts", "watts", "Power of the board at the moment of reading.");
inline constexpr auto power_rail = gauge("gpu_power_rail_watts", "watts", "Power of one rail or part of the board.");
inline constexpr auto power_max = gauge("gpu_power_max_watts", "watts", "Highest power of the window.");
inline constexpr auto power_min = gauge("gpu_power_min_watts", "watts", "Lowest power of the window.");
inline constexpr auto power_limit = gauge("gpu_power_limit_watts", "watts", "Power limit: enforced now, default, and the range it can be set to.");
inline constexpr auto energy_joules = counter("gpu_energy_joules_total", "joules", "Energy of the board; rate() is the true mean power.");
inline constexpr auto rail_energy_joules = counter("gpu_rail_energy_joules_total", "joules", "Energy of one rail or part of the board.");
inline constexpr auto voltage = gauge("gpu_voltage_volts", "volts", "Voltage of a rail.");

// Temperature and cooling
inline constexpr auto temperature = gauge("gpu_temperature_celsius", "celsius", "Temperature; core is what the vendor's tool calls the GPU's temperature (AMD: edge), hotspot the hottest spot (AMD: junction).");
inline constexpr auto temperature_limit = gauge("gpu_temperature_limit_celsius", "celsius", "Temperature at which the named thing happens.");
inline constexpr auto temperature_margin = gauge("gpu_temperature_margin_celsius", "celsius", "Lowest limit of a sensor minus its temperature, or the driver's own margin.");
inline constexpr auto fan_speed = gauge("gpu_fan_speed_ratio", "ratio", "Fan drive against its maximum.");
inline constexpr auto fan_rpm = gauge("gpu_fan_speed_rpm", "rpm", "Fan speed in revolutions per minute.");

// Clocks and performance
inline constexpr auto clock = gauge("gpu_clock_hertz", "hertz", "Clock frequency.");
inline constexpr auto clock_max = gauge("gpu_clock_max_hertz", "hertz", "Highest clock frequency that can be reached.");
inline constexpr auto performance_state = gauge("gpu_performance_state", "", "Performance state; 0 is the fastest.");
inline constexpr auto peak_flops = gauge("gpu_peak_flops", "flops", "Dense peak compute rate by data type, from a table of data sheets or by formula.");
inline constexpr auto peak_memory_bandwidth = gauge("gpu_peak_memory_bandwidth_bytes_per_second", "bytes_per_second", "Peak memory bandwidth.");

// Throttling
inline constexpr auto throttled = gauge("gpu_throttled", "", "1 while any reason of the cause holds the clocks down.");
inline constexpr auto throttle_seconds = counter("gpu_throttle_seconds_total", "seconds", "Time in which any reason of the cause held the clocks down; at most 1 s per s. Idle is not throttling.");
inline constexpr auto throttle_reason_active = gauge("gpu_throttle_reason_active", "", "1 while the reason, in the vendor's word, holds.");
inline constexpr auto throttle_reason_seconds = counter("gpu_throttle_reason_seconds_total", "seconds", "Time in which the reason, in the vendor's word, held.");

// PCI Express and other links
inline constexpr auto pcie_link_generation = gauge("gpu_pcie_link_generation", "", "PCIe generation that the card's upstream link runs at now; it falls when idle.");
inline constexpr auto pcie_link_lanes = gauge("gpu_pcie_link_lanes", "", "PCIe lanes that the card's upstream link runs with now.");
inline constexpr auto pcie_link_max_generation = gauge("gpu_pcie_link_max_generation", "", "Highest PCIe generation of the link.");
inline constexpr auto pcie_link_max_lanes = gauge("gpu_pcie_link_max_lanes", "", "Most PCIe lanes of the link.");
inline constexpr auto pcie_received_bytes = counter("gpu_pcie_received_bytes_total", "bytes", "Bytes received over PCIe.");
inline constexpr auto pcie_transmitted_bytes = counter("gpu_pcie_transmitted_bytes_total", "bytes", "Bytes transmitted over PCIe.");
inline constexpr auto pcie_replays = counter("gpu_pcie_replays_total", "", "PCIe packets that were sent again.");
inline constexpr auto pcie_errors = counter("gpu_pcie_errors_total", "", "PCIe errors.");
inline constexpr auto pcie_link_events = counter("gpu_pcie_link_events_total", "", "Things that a bad PCIe link shows beside errors, and partly because of them: not to be added to gpu_pcie_errors_total.");
inline constexpr auto interconnect_received_bytes = counter("gpu_interconnect_received_bytes_total", "bytes", "Bytes received over the links between GPUs, all links together.");
inline constexpr auto interconnect_transmitted_bytes = counter("gpu_interconnect_transmitted_bytes_total", "bytes", "Bytes transmitted over the links between GPUs, all links together.");
inline constexpr auto interconnect_errors = counter("gpu_interconnect_errors_total", "", "Errors of the links between GPUs, all links together.");
inline constexpr auto interconnect_links = gauge("gpu_interconnect_links", "", "Links between GPUs that the device has.");
inline constexpr auto interconnect_links_up = gauge("gpu_interconnect_links_up", "", "Links between GPUs that are up.");

// Each link by itself, on request; sums of these are the interconnect's
inline constexpr auto link_up = gauge("gpu_link_up", "", "1 while the link is up.");
inline constexpr auto link_received_bytes = counter("gpu_link_received_bytes_total", "bytes", "Bytes received over one link.");
inline constexpr auto link_transmitted_bytes = counter("gpu_link_transmitted_bytes_total", "bytes", "Bytes transmitted over one link.");
inline constexpr auto link_errors = counter("gpu_link_errors_total", "", "Errors of one link.");

// Memory errors and events
inline constexpr auto memory_errors = counter("gpu_memory_errors_total", "", "Memory errors since the driver was loaded.");
inline constexpr auto memory_lifetime_errors = counter("gpu_memory_lifetime_errors_total", "", "Memory errors since the card was made.");
inline constexpr auto hardware_errors = counter("gpu_hardware_errors_total", "", "Errors of the device's blocks that are not memory since the driver was loaded, by block and severity.");
inline constexpr auto retired_pages = gauge("gpu_retired_pages", "", "Memory pages taken out of use.");
inline constexpr auto retired_pages_pending = gauge("gpu_retired_pages_pending", "", "1 if a memory page is taken out of use at the next reset.");
inline constexpr auto remapped_rows = gauge("gpu_remapped_rows", "", "Memory rows replaced by spare ones.");
inline constexpr auto row_remap_pending = gauge("gpu_row_remap_pending", "", "1 if a row is replaced at the next reset.");
inline constexpr auto row_remap_failed = gauge("gpu_row_remap_failed", "", "1 if a row could not be replaced: the card wants replacing.");
inline constexpr auto row_remap_banks = gauge("gpu_row_remap_banks", "", "Memory banks by how many spare rows they have left.");
inline constexpr auto xid_errors = counter("gpu_xid_errors_total", "", "Driver error events by XID code.");
inline constexpr auto xid_last_timestamp = gauge("gpu_xid_last_timestamp_seconds", "seconds", "When the code was seen last, in Unix time.");
inline constexpr auto events = counter("gpu_events_total", "", "Things that happened to the device.");
inline constexpr auto recovery_action = gauge("gpu_recovery_action", "", "1 for what the driver asks for to bring the device back to health; other: an action that this version does not know.");
inline constexpr auto fabric_state = gauge("gpu_fabric_state", "", "1 for the state of the device's registration with the fabric manager; failed: it ended with an error.");
inline constexpr auto fabric_health = gauge("gpu_fabric_health", "", "1 for the fabric's health as the device sees it.");
inline constexpr auto fabric_info = gauge("gpu_fabric_info", "", "The fabric that the device is registered with, once registration has succeeded: clique, and the cluster's UUID if it has one; always 1.");
inline constexpr auto license_state = gauge("gpu_license_state", "", "1 for the state of the vGPU licence.");

// Slices of a device, each with the device's labels and `partition`. Never added to the device's own families.
inline constexpr auto partition_info = gauge("gpu_partition_info", "", "What a partition of a divided device is; always 1. NVIDIA: a GPU instance with several compute instances has one series for each, by compute_instance; compute_units is the sum for the GPU instance.");
inline constexpr auto partition_utilization = gauge("gpu_partition_utilization_ratio", "ratio", "Share of time in which the partition had work. AMD: its busiest compute die; NVIDIA: its graphics engine (GPM).");
inline constexpr auto partition_busy_seconds = counter("gpu_partition_busy_seconds_total", "seconds", "Time in which the partition had work, as in gpu_partition_utilization_ratio.");
inline constexpr auto partition_engine_utilization = gauge("gpu_partition_engine_utilization_ratio", "ratio", "Share of time in which an engine of the partition was busy.");
inline constexpr auto partition_engine_busy_seconds = counter("gpu_partition_engine_busy_seconds_total", "seconds", "Time in which an engine of the partition was busy.");
inline constexpr auto partition_compute_active = gauge("gpu_partition_compute_active_ratio", "ratio", "Share of the partition's compute units that had work.");
inline constexpr auto partition_compute_active_seconds = counter("gpu_partition_compute_active_seconds_total", "seconds", "Time with work, averaged over the partition's compute units.");
inline constexpr auto partition_compute_occupancy = gauge("gpu_partition_compute_occupancy_ratio", "ratio", "Resident warps or waves of the partition against the most that fit.");
inline constexpr auto partition_compute_occupancy_seconds = counter("gpu_partition_compute_occupancy_seconds_total", "seconds", "gpu_partition_compute_occupancy_ratio integrated over observed time.");
inline constexpr auto partition_pipe_active = gauge("gpu_partition_pipe_active_ratio", "ratio", "Share of the partition's cycles in which a pipe was active.");
inline constexpr auto partition_pipe_active_seconds = counter("gpu_partition_pipe_active_seconds_total", "seconds", "Time in which a pipe of the partition was active.");
inline constexpr auto partition_tensor_active = gauge("gpu_partition_tensor_active_ratio", "ratio", "Share of the partition's cycles with tensor instructions of one class, by kind as in gpu_tensor_active_ratio; parts of the tensor pipe's.");
inline constexpr auto partition_tensor_active_seconds = counter("gpu_partition_tensor_active_seconds_total", "seconds", "Time with tensor instructions of one class in the partition, by kind as in gpu_tensor_active_ratio; parts of the tensor pipe's.");
inline constexpr auto partition_memory_bandwidth_utilization = gauge("gpu_partition_memory_bandwidth_utilization_ratio", "ratio", "Memory traffic of the partition against the most that its memory can do.");
inline constexpr auto partition_memory_bandwidth_utilization_seconds = counter("gpu_partition_memory_bandwidth_utilization_seconds_total", "seconds", "gpu_partition_memory_bandwidth_utilization_ratio integrated over observed time.");
inline constexpr auto partition_memory_size = gauge("gpu_partition_memory_size_bytes", "bytes", "Memory that the partition can allocate.");
inline constexpr auto partition_memory_used = gauge("gpu_partition_memory_used_bytes", "bytes", "Memory of the partition in use.");
inline constexpr auto partition_memory_free = gauge("gpu_partition_memory_free_bytes", "bytes", "Memory of the partition not in use.");
inline constexpr auto partition_memory_reserved = gauge("gpu_partition_memory_reserved_bytes", "bytes", "Memory of the partition that the driver keeps for itself.");
inline constexpr auto partition_peak_flops = gauge("gpu_partition_peak_flops", "flops", "Dense peak compute rate of the partition by data type, from a table of data sheets or by formula.");
inline constexpr auto partition_xid_errors = counter("gpu_partition_xid_errors_total", "", "Driver error events that the driver attributes to the partition, by XID code; parts of gpu_xid_errors_total. Codes of programs have series of their own, all others are other.");

// Groups of processes
inline constexpr auto workload_memory_used = gauge("gpu_workload_memory_used_bytes", "bytes", "Device memory that the workload's processes hold.");
inline constexpr auto workload_busy_seconds = counter("gpu_workload_busy_seconds_total", "seconds", "Time in which work of the workload's processes was on the device, summed over them.");
inline constexpr auto workload_energy = counter("gpu_workload_energy_joules_total", "joules", "The workload's part of the device's energy, by its share; what nobody used is unattributed. The sum is the device's.");
inline constexpr auto workload_share = gauge("gpu_workload_share_ratio", "ratio", "The workload's share of the device: of the busy time of the last minute, of the memory held where nobody was busy. Sums to 1 over the device's workloads.");
inline constexpr auto workload_info = gauge("gpu_workload_info", "", "What the workload is; always 1. Join by kind and workload.");
inline constexpr auto process_memory_used = gauge("gpu_process_memory_used_bytes", "bytes", "Device memory that the process holds.");
inline constexpr auto process_busy_seconds = counter("gpu_process_busy_seconds_total", "seconds", "Time in which work of the process was on the device.");

// Jobs, each with `run` and `user`. Never labels of a device's series.
inline constexpr auto ml_steps = counter("ml_steps_total", "", "Steps done, summed over the processes of the run.");
inline constexpr auto ml_step = gauge("ml_step", "", "Number of the step that the run is at: the highest of its live processes.");
inline constexpr auto ml_samples = counter("ml_samples_total", "", "Samples gone through, summed over the processes of the run.");
inline constexpr auto ml_tokens = counter("ml_tokens_total", "", "Tokens gone through, summed over the processes of the run.");
inline constexpr auto ml_model_flops = counter("ml_model_flops_total", "flops", "Floating-point operations that the model needed, as the job counts them, summed over its processes.");
inline constexpr auto ml_phase_seconds = counter("ml_phase_seconds_total", "seconds", "Time spent in a phase, summed over the processes of the run.");
inline constexpr auto ml_phases = counter("ml_phases_total", "", "How often a phase was gone through, summed over the processes of the run.");
inline constexpr auto ml_step_duration = histogram("ml_step_duration_seconds", "seconds", "Duration of a step.");
inline constexpr auto ml_inference_duration = histogram("ml_inference_duration_seconds", "seconds", "Duration of an inference request.");
inline constexpr auto ml_time_to_first_token = histogram("ml_time_to_first_token_seconds", "seconds", "From a request to its first token.");
inline constexpr auto ml_inter_token_latency = histogram("ml_inter_token_latency_seconds", "seconds", "From one token of an answer to the next.");
inline constexpr auto ml_loss = gauge("ml_loss", "", "Loss, as last reported.");
inline constexpr auto ml_eval_value = gauge("ml_eval_value", "", "Result of the last evaluation.");
inline constexpr auto ml_eval_best_value = gauge("ml_eval_best_value", "", "Best result of an evaluation so far: the highest, or the lowest if the job sends direction:min or the metric is a loss or an error.");
inline constexpr auto ml_target_value = gauge("ml_target_value", "", "Result of an evaluation that the run is to reach.");
inline constexpr auto ml_custom = gauge("ml_custom", "", "Last value of a custom scalar. metric is the name that the job gives it, such as learning_rate.");
inline constexpr auto ml_batch_size = gauge("ml_batch_size", "", "Batch size, as last reported.");
inline constexpr auto ml_world_size = gauge("ml_world_size", "", "Processes of the run over all machines, as last reported.");
inline constexpr auto ml_run_start_timestamp = gauge("ml_run_start_timestamp_seconds", "seconds", "Start of the run in Unix time, as its run_start gives it, or its first message if it sent none.");
inline constexpr auto ml_run_stop_timestamp = gauge("ml_run_stop_timestamp_seconds", "seconds", "End of the run in Unix time, by status: success, aborted, or lost if a process ended without run_stop. Present once all its processes have ended.");
inline constexpr auto ml_run_time = gauge("ml_run_time_seconds", "seconds", "Time from the start of the run to its end, to now while it runs, or to its last message if it sent neither run_start nor run_stop.");
inline constexpr auto ml_time_to_solution = gauge("ml_time_to_solution_seconds", "seconds", "Time from the start of the run to the first evaluation that met the target. Absent until then, and if an evaluation before the start of the daemon may have met it.");
inline constexpr auto ml_run_restarts = counter("ml_run_restarts_total", "", "How often the run began again after all its processes were gone, or said that it did.");
inline constexpr auto ml_lost_steps = counter("ml_lost_steps_total", "", "Steps that had been done before a restart and had to be done again.");
inline constexpr auto ml_last_update_timestamp = gauge("ml_last_update_timestamp_seconds", "seconds", "When the run was last heard of, in Unix time.");
inline constexpr auto ml_energy = counter("ml_energy_joules_total", "joules", "Energy of the GPUs, by the run's share of them. Includes GPUs that ml_run_gpu_info marks as guessed.");
inline constexpr auto ml_gpu_idle_allocated_seconds = counter("ml_gpu_idle_allocated_seconds_total", "seconds", "Time in which a GPU that the run holds had nothing to do.");
inline constexpr auto ml_run_info = gauge("ml_run_info", "", "What the run says it is; always 1.");
inline constexpr auto ml_run_gpu_info = gauge("ml_run_gpu_info", "", "A GPU that processes of the run use; always 1. Join by uuid. source is process if the kernel relates such a process to one that reports the run (itself, its cgroup, its ancestors or descendants); it is workload, a guess, if they share only the user and the Slurm job, pod or unit.");
// clang-format on

}  // namespace gpumeter::catalog
