#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "base/text.hpp"

namespace gpumeter::catalog {

/// The meaning of a label, or of some of its values, for docs/metrics.md. A label that is missing here, and a
/// value that is missing in a closed set, fail docs_up_to_date.
struct LabelMeaning {
  /// As of covered(). kOfRows: the families whose rows have the label.
  std::string_view families;
  std::string_view labels;  ///< with spaces between
  std::string_view values;  ///< likewise, of one label; empty: any value
  std::string_view
      meaning;  ///< as many parts between `; ` as there are names: one each. Empty: the help has it
};
inline constexpr std::string_view kOfRows = "gpu_*";

/// Returns the length of the longest pattern that covers the name; 0: none. `*` ends a pattern for all names
/// that begin so; a pattern after `-` excludes those that it covers.
inline std::size_t covered(std::string_view patterns, std::string_view name) noexcept {
  std::size_t longest = 0;
  while (!patterns.empty()) {
    std::string_view pattern = take_until(patterns, ' ');
    const std::string_view whole = pattern;
    const bool excludes = pattern.starts_with('-');
    if (excludes) pattern.remove_prefix(1);
    const bool is_beginning = pattern.ends_with('*');
    if (is_beginning) pattern.remove_suffix(1);
    if (is_beginning ? !name.starts_with(pattern) : name != pattern) continue;
    if (excludes) return 0;
    longest = std::max(longest, whole.size());
  }
  return longest;
}

// clang-format off
inline constexpr LabelMeaning kLabels[] = {
    // The device itself
    {"gpu_info", "driver", "", "kernel driver of the device"},
    {"gpu_info", "driver_version", "", "version of the vendor's driver, if it has its own"},
    {"gpu_info", "vbios_version", "", "version of the card's VBIOS"},
    {"gpu_info", "firmware_version", "", "version of the firmware that the driver loaded, or of the card's"},
    {"gpu_info", "pci_address", "", "address on the PCI bus, with a domain of four digits, in lower case"},
    {"gpu_info", "serial", "", "serial number of the board"},
    {"gpu_info", "architecture", "", "generation of the chip: NVIDIA's in lower case (hopper), AMD's as the compiler names it (gfx942)"},
    {"gpu_info", "compute_capability", "", "NVIDIA's compute capability, such as 9.0"},
    {"gpu_info gpu_partition_info", "compute_units", "", "number of compute units: streaming multiprocessors (NVIDIA), compute units (AMD), cores"},
    {"gpu_info", "numa_node", "", "NUMA node of the machine to which the device is attached"},
    {"gpu_info", "local_cpus", "", "CPUs of that node"},
    {"gpu_info", "memory_numa_node", "", "NUMA node that the device's memory forms, if the CPU sees it as one (Grace Hopper)"},
    {"gpu_info", "vendor_index", "", "index of the device in the vendor's own tool"},
    {"gpu_info gpu_partition_info", "minor", "", "number of the device's node: of /dev/nvidiaN (NVIDIA), of the render node (others)"},
    {"gpu_info", "name", "", "name that `devices` of the configuration gives the device"},
    {"gpu_observed_seconds_total gpumeter_sample_duration_seconds", "tier", "", "how often the values are read: fast, normal, slow or once"},
    {"gpu_meter_source_info", "quantity", "", "name of the counter without gpu_, its unit and _total"},
    {"gpu_meter_source_info", "source", "", ""},
    {"gpu_meter_source_info", "source", "activity busy slices memory equal", "of quantity workload_energy, see [workloads.md](workloads.md#energy-idle-and-active)"},
    {"gpu_platform_info", "chassis_serial slot tray host module", "", ""},
    {"gpu_inventory_info", "brand", "", "vendor's line of products, such as geforce, nvidia_rtx or nvidia (data centre)"},
    {"gpu_inventory_info", "board_id board_part_number", "", "number that all GPUs of one board share; part number of the board"},
    {"gpu_inventory_info", "multi_gpu_board", "", "1 if the board has several GPUs, otherwise 0"},
    {"gpu_inventory_info", "pdi", "", "per-device identifier of the chip"},
    {"gpu_inventory_info", "pci_device_id pci_subsystem_id pci_class", "", "vendor and device, likewise of the board, and class with subclass, as `lspci -n` prints them"},
    {"gpu_inventory_info", "pcie_max_generation", "", "highest PCIe generation of the device alone; gpu_pcie_link_max_generation is that of the device and its slot together"},
    {"gpu_inventory_info", "inforom_image inforom_oem inforom_ecc inforom_power", "", "version of the inforom, and of its parts for the maker's data, error correction and power management"},
    {"gpu_inventory_info", "cuda_version", "", "highest version of CUDA that the driver supports"},
    {"gpu_topology_info", "peer", "", "uuid of the other GPU"},
    {"gpu_topology_info", "path", "", ""},
    {"gpu_license_state", "state", "licensed", "the vGPU has a licence"},
    {"gpu_license_state", "state", "unlicensed", "the vGPU has none; the driver limits its performance"},
    {"gpu_mode", "mode", "persistence", "persistence mode: enabled if the driver stays loaded without clients, otherwise disabled"},
    {"gpu_mode", "mode", "ecc", "error correction of the memory: enabled or disabled"},
    {"gpu_mode", "mode", "ecc_pending", "error correction after the next reset: enabled or disabled"},
    {"gpu_mode", "mode", "mig", "division into MIG instances: enabled or disabled"},
    {"gpu_mode", "mode", "mig_pending", "division into MIG instances after the next reset: enabled or disabled"},
    {"gpu_mode", "mode", "display", "enabled while a display is initialised on the GPU, otherwise disabled"},
    {"gpu_mode", "mode", "compute", "which processes may use the GPU: default: any number; exclusive_process: one; exclusive_thread: one thread (old drivers); prohibited: none"},
    {"gpu_mode", "mode", "confidential", "confidential computing: enabled or disabled"},
    {"gpu_mode", "mode", "confidential_multi_gpu", "protection between GPUs in confidential computing: none; protected_pcie; nvle: encrypted NVLink"},
    {"gpu_mode", "mode", "accounting", "NVIDIA: accounting of processes by the driver: enabled or disabled"},
    {"gpu_mode", "mode", "addressing", "NVIDIA: how the GPU reads the host's pageable memory: none; hmm: through the kernel's heterogeneous memory management; ats: by the host's page tables"},
    {"gpu_mode", "mode", "c2c", "NVIDIA: NVLink-C2C to the CPU: enabled or disabled"},
    {"gpu_mode", "mode", "egm", "NVIDIA: extended GPU memory (the host's memory as the GPUs'): enabled or disabled"},
    {"gpu_mode", "mode", "virtualization", "NVIDIA: none; passthrough: the GPU of a virtual machine; vgpu: a part of one; host_vgpu, host_vsga: a host that divides it"},
    {"gpu_mode", "mode", "compute_partition", "AMD: partitions of the card: spx: 1; dpx: 2; tpx: 3; qpx: 4; cpx: one for each compute die (XCD)"},
    {"gpu_mode", "mode", "memory_partition", "AMD: NUMA domains of the card's memory: nps1: 1; nps2: 2; nps4: 4; nps8: 8"},
    {"gpu_mode", "mode", "performance_level", "AMD: control of the clocks: auto: by load; low, high: fixed at the end of the range; manual: levels chosen by hand; profile_standard, profile_min_sclk, profile_min_mclk, profile_peak: fixed for profiling; perf_determinism: graphics clock limited for equal run times"},
    {"gpu_mode", "mode", "status", "Gaudi: operational; in_reset; malfunction: the driver has disabled the device; needs_reset; in_creation: the driver is initialising it"},
    {"gpu_mode", "state", "", "state of the mode; the values are listed with each mode"},

    // Utilisation, memory, power, temperature, clocks
    {kOfRows, "engine", "graphics", "graphics and, on most chips, compute"},
    {kOfRows, "engine", "compute copy decode encode jpeg", "compute queues; copies (DMA); video decoders; video encoders; JPEG decoders"},
    {kOfRows, "engine", "optical_flow", "NVIDIA's optical flow accelerator"},
    {kOfRows, "engine", "video video_enhance", "Intel: codecs; conversion of video (VEBOX)"},
    {kOfRows, "engine", "bin cache_clean cpu", "Broadcom V3D: binning of triangles; flushes of caches; work that the kernel does for a queue"},
    {kOfRows, "pipe", "tensor fp64 fp32 fp16 int", "pipe that executes the instructions: tensor cores, or those of a data type"},
    {"gpu_tensor* gpu_partition_tensor*", "kind", "", "class of tensor instructions; see gpu_tensor_active_ratio"},
    {"gpu_gt_idle_seconds_total", "gt", "", "index of the graphics tile"},
    {"gpu_video_*", "session", "encode capture", ""},
    {kOfRows, "window", "", "the time before the sample: 1m"},
    {kOfRows, "memory", "vram gtt bar1 unified", ""},
    {"gpu_memory_category_used_bytes", "category", "", "the driver's name of the use, such as tensors, constants, model_code or runtime_memory"},
    {kOfRows, "rail", "", "the driver's name of the rail or part, such as gpu, memory, package, card, module or soc"},
    {"gpu_power_limit_watts", "limit", "enforced requested default min max", ""},
    {"gpu_temperature*", "sensor", "core hotspot memory", "the GPU; its hottest spot; its memory"},
    {"gpu_temperature*", "sensor", "", "other sensors have the driver's name, such as hbm0 (a stack of memory), xcd0 (a compute die), aid0 (an I/O die), vrgfx (a voltage regulator) or vram_ch_0 (a channel of memory)"},
    {"gpu_temperature_limit_celsius", "limit", "target", "temperature that the fan control aims at"},
    {"gpu_temperature_limit_celsius", "limit", "max", "highest temperature for normal operation"},
    {"gpu_temperature_limit_celsius", "limit", "slowdown critical", "temperature at which the hardware slows down, as NVIDIA's or other drivers name it"},
    {"gpu_temperature_limit_celsius", "limit", "shutdown emergency", "temperature at which the hardware switches itself off, as NVIDIA's or other drivers name it"},
    {"gpu_fan*", "fan", "", "index of the fan"},
    {"gpu_clock*", "clock", "graphics sm memory video soc fabric", "graphics engine; multiprocessors (NVIDIA); memory; codecs; system on a chip; on-chip network"},
    {"gpu_clock*", "clock", "axi arc", "Tenstorrent: bus; management processors"},
    {"gpu_peak_flops gpu_partition_peak_flops gpu_benchmark_flops ml_model_flops_total", "dtype", "", "data type of the operands: fp64, fp32, tf32, fp16, bf16, fp8, int8 or fp4"},
    {"gpu_peak_flops gpu_partition_peak_flops", "source", "", ""},
    {"gpu_power_sensor* gpu_energy_uncertainty*", "source", "average instant usage", "power.draw.average, power.draw.instant and power.draw of nvidia-smi"},
    {"gpu_power_sensor* gpu_energy_uncertainty*", "source", "samples hardware", "the driver's buffer of samples; the energy counter"},

    // Throttling
    {"gpu_throttle* ml_throttled_seconds_total", "cause", "power", "a power limit of the board or of a part, or the power brake"},
    {"gpu_throttle* ml_throttled_seconds_total", "cause", "thermal", "a temperature limit of the GPU, its memory or a voltage regulator"},
    {"gpu_throttle* ml_throttled_seconds_total", "cause", "current", "a current limit of a rail or a voltage regulator"},
    {"gpu_throttle* ml_throttled_seconds_total", "cause", "reliability", "a limit that protects the chip or the board from wear"},
    {"gpu_throttle* ml_throttled_seconds_total", "cause", "hardware", "a signal from outside the driver's control, such as PROCHOT, or a reason without a name"},
    {"gpu_throttle* ml_throttled_seconds_total", "cause", "sync", "the clocks of the slowest GPU of a synchronised group (NVIDIA sync boost)"},
    {"gpu_throttle* ml_throttled_seconds_total", "cause", "software", "clocks that a user, an application or the driver has set"},
    {"gpu_throttle_reason*", "reason", "sw_power_cap", "NVIDIA: the driver holds the power limit"},
    {"gpu_throttle_reason*", "reason", "hw_power_brake", "NVIDIA: the machine asserts the power brake, for example because a power supply failed"},
    {"gpu_throttle_reason*", "reason", "sw_thermal", "NVIDIA: the driver holds the GPU or its memory below the highest operating temperature"},
    {"gpu_throttle_reason*", "reason", "hw_thermal", "NVIDIA: the hardware halves the clocks or more, because a temperature is too high"},
    {"gpu_throttle_reason*", "reason", "hw_slowdown", "NVIDIA: the hardware halves the clocks or more: temperature, power brake, or power above the limit"},
    {"gpu_throttle_reason*", "reason", "sync_boost", "NVIDIA: sync boost"},
    {"gpu_throttle_reason*", "reason", "board_limit reliability", "NVIDIA: the board's limit; the reliability limit of the voltage"},
    {"gpu_throttle_reason*", "reason", "applications_clocks display_clocks", "NVIDIA: the clocks set for applications (nvidia-smi -ac); those set for displays"},
    {"gpu_throttle_reason*", "reason", "ppt ppt0 ppt1 ppt2 ppt3", "AMD: a limit of package power tracking"},
    {"gpu_throttle_reason*", "reason", "spl fppt sppt sppt_apu", "AMD: sustained power limit; fast package power tracking; slow package power tracking; that of the APU"},
    {"gpu_throttle_reason*", "reason", "tdc_gfx tdc_soc tdc_mem tdc_vdd tdc_cvip", "AMD: sustained current (TDC) of the rail of graphics, SoC, memory, the core voltage or the vision processor"},
    {"gpu_throttle_reason*", "reason", "edc_cpu edc_gfx", "AMD: peak current (EDC) of the CPU or of graphics"},
    {"gpu_throttle_reason*", "reason", "apcc ppm", "AMD: limits without a public description, of current (APCC) and of reliability (PPM), under the kernel's names"},
    {"gpu_throttle_reason*", "reason", "fit", "AMD: the limit of expected failures in time"},
    {"gpu_throttle_reason*", "reason", "temp_gpu temp_core temp_mem temp_edge temp_hotspot temp_soc temp_liquid0 temp_liquid1", "AMD: the temperature of the GPU, the CPU cores, the memory, the edge, the hottest spot, the SoC or the coolant"},
    {"gpu_throttle_reason*", "reason", "temp_vr_gfx temp_vr_soc temp_vr_mem0 temp_vr_mem1 vrhot0 vrhot1 vr_thm", "AMD: the temperature of a voltage regulator, or its alarm (VRHOT)"},
    {"gpu_throttle_reason*", "reason", "socket_thm hbm_thm", "AMD: the temperature of the socket; of the memory stacks"},
    {"gpu_throttle_reason*", "reason", "prochot prochot_cpu prochot_gfx", "AMD, Intel: another device of the machine asserts PROCHOT"},
    {"gpu_throttle_reason*", "reason", "pl1 pl2 pl4", "Intel: the sustained, the short and the peak power limit"},
    {"gpu_throttle_reason*", "reason", "psys_pl1 psys_pl2 psys_crit", "Intel: the sustained, the short and the critical power limit of the whole platform"},
    {"gpu_throttle_reason*", "reason", "thermal ratl soc_thermal soc_avg_thermal mem_thermal", "Intel: the temperature of the chip, its running average, that of the SoC and its average, that of the memory"},
    {"gpu_throttle_reason*", "reason", "vr_thermal vr_thermalert", "Intel: the temperature of a voltage regulator, and its alarm"},
    {"gpu_throttle_reason*", "reason", "vr_tdc iccmax", "Intel: the sustained and the peak current"},
    {"gpu_throttle_reason*", "reason", "pwrbrk", "Intel: the machine asserts the power brake"},
    {"gpu_throttle_reason*", "reason", "fastvmode p0_freq", "Intel: the fast voltage mode; the highest frequency of the power state"},
    {"gpu_throttle_reason*", "reason", "other", "Intel: a reason that this version of gpumeter does not know"},

    // Links
    {"gpu_interconnect_* gpu_link_*", "kind", "nvlink xgmi xelink c2c", ""},
    {"gpu_link_*", "link", "", "index of the link in the driver"},
    {"gpu_interconnect_fec_history_total", "bin", "", ""},
    {kOfRows, "error", "crc crc_flit crc_data", "a checksum was wrong: of a packet, a flow-control unit, its data"},
    {kOfRows, "error", "replay replay_back_to_back", "a packet was sent again; several times in a row"},
    {kOfRows, "error", "recovery recovery_failed", "the link was trained again; that failed"},
    {kOfRows, "error", "ecc_data", "ECC found an error in a buffer"},
    {kOfRows, "error", "discard receive malformed_packet buffer_overrun", "packet dropped before it was sent; packet received with an error; malformed packet; no room for a packet"},
    {kOfRows, "error", "local_link_integrity", "more errors of the physical layer than the link's threshold"},
    {kOfRows, "error", "receive_remote receive_general", "packet that the other side had marked as bad; packet with another error"},
    {kOfRows, "error", "effective symbol", "of bit error ratios: after forward error correction; after all corrections of the link"},
    {"gpu_pcie_errors_total", "severity", "correctable nonfatal fatal", "repaired by the link; a transaction is lost; the link is not reliable until a reset"},
    {"gpu_pcie_errors_total", "kind", "", "the error's name in the PCI Express specification, such as bad_tlp; any: the card does not name it"},
    {"gpu_pcie_link_events_total", "event", "replay_rollover", "the card's counter of retransmitted packets began again at 0"},
    {"gpu_pcie_link_events_total", "event", "l0_to_recovery", "the link left its working state to be trained again"},
    {"gpu_pcie_link_events_total", "event", "nak_sent nak_received", "the card asked for a packet again; the other side did"},
    {"gpu_pcie_link_events_total", "event", "lcrc_error lane_error unsupported_request", "a packet had a wrong checksum; a lane had an error; the card does not support a request"},
    {"gpu_fabric_state", "state", "not_supported not_started in_progress completed failed", "registration with the fabric manager is not possible; has not begun; is under way; has succeeded; has failed"},
    {"gpu_fabric_health", "state", "healthy limited_capacity unhealthy", "all of the fabric works; some of it is lost; it does not work"},
    {"gpu_fabric_condition", "condition", "degraded_bandwidth route_recovery route_unhealthy access_timeout", "less bandwidth; a route is being recovered; a route is not healthy; an access timed out and is being recovered"},
    {"gpu_fabric_condition", "condition", "wrong_system_guid wrong_chassis_serial too_few_links", "configuration: the GUID of the system; the serial number of the chassis; not enough links of the GPU"},
    {"gpu_fabric_condition", "condition", "incompatible_firmware invalid_location invalid_gpu_state", "configuration: the GPU's firmware; its location; its state"},
    {"gpu_fabric_condition", "condition", "no_partition partition_unassigned manager_disconnected", "no partition is configured; the GPU is in no partition; the global fabric manager is not connected"},
    {"gpu_fabric_info", "clique", "", "number of the group of GPUs that reach each other over the fabric"},
    {"gpu_fabric_info", "cluster_uuid", "", "uuid of the rack's fabric"},

    // Errors and events
    {kOfRows, "severity", "corrected uncorrected deferred", "repaired; not repaired; not repaired, and the data is not used yet"},
    {"gpu_hardware_errors_total", "severity", "nonfatal", "not repaired, and the device goes on"},
    {kOfRows, "location", "dram sram", "device memory; all caches and register files"},
    {kOfRows, "location", "l1 l2 register_file texture shared cbu", "the part of the SRAM, on NVIDIA GPUs before Ampere (cbu: control of branches)"},
    {kOfRows, "location", "umc", "AMD: the memory controllers, with the memory"},
    {kOfRows, "location", "hbm hbm_repairable", "Neuron: device memory; the part of the errors that a repair can remove"},
    {kOfRows, "location", "device_memory", "Intel: device memory"},
    {"gpu_hardware_errors_total", "block", "", "the driver's name of the block, such as gfx (graphics and compute), sdma (copies), xgmi_wafl (links) or device (the whole)"},
    {"gpu_sram_lifetime_errors_total", "unit", "l2 sm pcie microcontroller other", "L2 cache; multiprocessors; PCIe; a microcontroller of the chip; any other"},
    {"gpu_remapped_banks", "state", "active inactive pending", ""},
    {"gpu_bank_remap_groups", "availability", "max none", ""},
    {"gpu_health_advisory_info", "advisory", "", "its name in [conditions.md](conditions.md#advisories)"},
    {"gpu_repair_pending", "part", "channel tpc", ""},
    {"gpu_retired_pages gpu_remapped_rows*", "cause", "single_bit corrected", "several errors that ECC corrected"},
    {"gpu_retired_pages gpu_remapped_rows*", "cause", "double_bit uncorrected", "an error that ECC could not correct"},
    {"gpu_row_remap_banks", "availability", "max high partial low none", "share of the bank's spare rows that is left, from all to none"},
    {"gpu_xid* gpu_partition_xid*", "xid", "", "code of the error, listed in conditions.md; other: all codes without a series"},
    {"gpu_events_total", "event", "bus_lost returned", "the device no longer answers on its bus; gpumeter reads it again"},
    {"gpu_events_total", "event", "reset reset_done reset_failed", "a reset began (in the kernel's log: succeeded); succeeded; failed, or did not succeed within a minute"},
    {"gpu_events_total", "event", "engine_reset wedged", "the kernel's log: an engine was reset; the device hangs and waits for a reset"},
    {"gpu_events_total", "event", "repeated_xid", "the kernel's log: an XID 13, 31 or 74 came back at one place within 24 hours, and at no other"},
    {"gpu_events_total", "event", "off_bus", "the kernel's log: the device no longer answers on the PCI bus"},
    {"gpu_events_total", "event", "reset_required", "the driver asks for a reset"},
    {"gpu_events_total", "event", "memory_lost", "a reset cleared the device's memory; its jobs have ended"},
    {"gpu_events_total", "event", "ras", "AMD: the driver handled a hardware error"},
    {"gpu_events_total", "event", "vm_fault", "AMD: a program used an address that is not mapped"},
    {"gpu_events_total", "event", "thermal_throttle thermal_trip", "a temperature limit slowed the device; switched it off"},
    {"gpu_events_total", "event", "timeout", "Neuron: the device did not complete a command in time"},
    {"gpu_events_total", "event", "single_bit_ecc ecc_storm double_bit_ecc", "NVIDIA: an error that ECC corrected; very many of them; one that it could not correct"},
    {"gpu_events_total", "event", "dram_retirement dram_retirement_failure", "NVIDIA: a part of the memory is taken out of use; that failed"},
    {"gpu_events_total", "event", "poison_nonfatal poison_fatal", "NVIDIA: corrupt data reached a process; the whole device"},
    {"gpu_events_total", "event", "gpu_unavailable", "NVIDIA: the driver reports that the GPU cannot be used"},
    {"gpu_events_total", "event", "recovery_action", "NVIDIA: gpu_recovery_action has changed"},
    {"gpu_events_total", "event", "mig_config_change", "NVIDIA: the division into MIG instances has changed"},
    {"gpu_operational_events_total", "module code", "", "part of the driver, such as GPU-RAS or GPU-NVLINK, other: unnamed; number of the event in that part, as in NVIDIA's catalogue"},
    {"gpu_operational_events_total", "severity", "informational corrected recoverable fatal simulated other", "no error; an error that was corrected; one that the job or the device can recover from; one that it cannot; made by a test of the driver; unknown to this version"},
    {"gpu_recovery_action", "action", "none reset reboot drain_p2p drain_and_reset recover_imex bus_reset system_reboot other", "nothing; reset the GPU; reboot the machine; stop traffic between GPUs; end the jobs and reset; restart the IMEX domain; reset the GPU through its bus; reboot the system; unknown to this version"},
    {"gpu_health", "state", "ok degraded failed unknown", ""},
    {"gpu_health_reason", "reason", "", "the condition, or xid_ with the code, see [conditions.md](conditions.md)"},
    {"gpu_health_reason", "severity", "degraded failed", "the state to which the reason leads"},
    {"gpu_health_reason", "action", "none restart_job drain reset reboot replace", "see [conditions.md](conditions.md)"},

    // Benchmarks
    {"gpu_benchmark_flops", "backend", "", "library that computed, such as cublas or opencl"},
    {"gpu_benchmark_memory_bandwidth_bytes_per_second", "operation", "read write copy triad", ""},
    {"gpu_benchmark_transfer_bytes_per_second", "direction", "host_to_device device_to_host device_to_device", ""},
    {"gpu_benchmark_result gpu_benchmark_failed gpu_benchmark_timestamp_seconds", "suite", "", "program or collection of benchmarks: gpumeter, or the name in imported results"},
    {"gpu_benchmark_result", "test unit", "", "the suite's name of the benchmark, and the unit of its result"},

    // Partitions
    {"gpu_partition_* gpu_allocat*", "partition", "", "\"<profile>:<id>\" of the partition; absent for a whole GPU"},
    {"gpu_partition_info", "profile", "", "size of the partition: MIG's profile (1g.18gb), AMD's compute partition (cpx)"},
    {"gpu_partition_info", "gpu_instance compute_instance mig_uuid", "", "NVIDIA: ids of the GPU instance and of the compute instance, and the uuid by which CUDA names it"},
    {"gpu_partition_info", "profile_id placement", "", "NVIDIA: id of the profile, and the first memory slice"},
    {"gpu_partition_info", "memory_profile", "", "AMD: the memory's partition mode (nps4)"},

    // Who uses a GPU
    {"gpu_workload_* gpu_allocat* ml_server_info", "kind", "systemd_unit user_unit session", "unit of the system; unit of a user's manager; login"},
    {"gpu_workload_* gpu_allocat* ml_server_info", "kind", "pod container vm slurm_job", "Kubernetes pod; container outside Kubernetes; virtual machine; Slurm job"},
    {"gpu_workload_* gpu_allocat* ml_server_info", "kind", "other unattributed", "another control group; no group"},
    {"gpu_workload_* gpu_allocat* ml_server_info", "workload", "", "name of the unit, the id of the pod, container, machine or job; _other: those beyond the limit"},
    {"gpu_workload_info", "unit container_id container_runtime pod_uid", "", "facts that the control group has"},
    {"gpu_workload_info", "k8s_namespace k8s_pod k8s_container k8s_owner_kind k8s_owner k8s_label_*", "", "names of the pod, see [kubernetes.md](kubernetes.md)"},
    {"gpu_workload_info", "slurm_job slurm_sluid slurm_job_name slurm_account slurm_partition slurm_qos slurm_array_job slurm_array_task", "", "facts of the Slurm job, see [slurm.md](slurm.md)"},
    {"gpu_workload_info gpu_process_*", "user", "", "owner of the processes: a name of this machine, or the number of the uid"},
    {"gpu_workload_info", "source", "process", "the driver reports busy time or memory of the workload's processes"},
    {"gpu_workload_info", "source", "equal", "the driver reports neither: shares are equal parts"},
    {"gpu_workload_info", "source", "allocation", "the workload was given a GPU and has no process on one"},
    {"gpu_allocation_info", "source", "kubelet dra slurm", "the kubelet's pod-resources; dynamic resource allocation of Kubernetes; Slurm"},
    {"gpu_allocation_info", "source", "manual cgroup", "`gpumeter allocate`; the devices that the control group permits"},
    {"gpu_process_*", "pid name", "", "number of the process; its command name"},
    {"gpu_host_pressure_seconds_total", "resource waiting", "", ""},

    // Jobs
    {"ml_* -ml_server_*", "run", "", "name of the run, given by the job"},
    {"ml_* -ml_server_*", "user", "", "owner of the job's processes, identified by the kernel"},
    {"ml_steps_total ml_samples_total ml_tokens_total ml_step_duration_seconds ml_loss", "split", "train eval infer", "training; evaluation; inference"},
    {"ml_tokens_total", "kind", "train input output", "tokens of training; of a request; of its answer"},
    {"ml_phase*", "phase", "data_loading h2d", "waiting for the next batch; copying it to the device"},
    {"ml_phase*", "phase", "forward backward optimizer communication", "forward pass; backward pass; optimiser step; exchange between processes"},
    {"ml_phase*", "phase", "checkpoint_save checkpoint_load eval compile init idle other", "as the words say; other: also phases outside this list"},
    {"ml_eval* ml_target_value ml_custom ml_time_to_solution_seconds", "metric", "", "name of the value, given by the job"},
    {"ml_run_stop_timestamp_seconds", "status", "success aborted lost", ""},
    {"ml_run_info", "framework version model", "", "as the job reports them"},
    {"ml_run_info", "precision", "", "data type of the matrix multiplications, or mixed"},
    {"ml_run_info", "sharding", "", "how data-parallel processes split parameters: fsdp, hsdp, zero1, zero2 or zero3"},
    {"ml_run_info", "data_parallel tensor_parallel pipeline_parallel", "", "replicas of the model; processes that share each layer; stages"},
    {"ml_run_gpu_info ml_server_info ml_nccl_bus* ml_nccl_operation* ml_nccl_recorded* ml_nccl_lost* ml_nccl_dump* gpumeter_sample_duration_seconds gpumeter_read_errors_total", "gpu", "", "index of the GPU"},
    {"ml_run_gpu_info ml_server_info ml_nccl_bus* ml_nccl_operation* ml_nccl_recorded* ml_nccl_lost* ml_nccl_dump*", "uuid", "", "uuid of the GPU"},
    {"ml_nccl_bus* ml_nccl_operation* ml_nccl_recorded* ml_nccl_lost* ml_nccl_dump*", "partition", "", "partition of the GPU; absent for a whole one"},
    {"ml_run_gpu_info", "source", "process workload nccl", ""},
    {"ml_allocator_memory_bytes", "state", "allocated reserved peak", ""},
    {"ml_profile*", "trigger", "", "request, or the name of the condition in `profiles.conditions`"},
    {"ml_profiles_total", "status", "done failed timeout refused", "each process took its trace; a process ended or rejected the order; a process was too late; cooldown, budget, or another trace under way"},
    {"ml_nccl_ranks ml_nccl_stalled_rank", "state", "ok error missing dead", "as NCCL reports the rank: it works; an error, or aborted; its process does not answer; NCCL gave it up"},
    {"ml_nccl_stalled_rank", "state", "behind", "it has launched fewer operations than the others and stands still"},
    {"ml_nccl_stalled_rank ml_flight_recorder_*", "rank", "", "number of the rank in its communicator, or in the job"},
    {"ml_nccl_stalled_rank", "host", "", "address of the rank's machine"},
    {"ml_nccl_collectives_total ml_nccl_bus* ml_nccl_operation*", "op", "", "operation: broadcast, reduce, all_gather, reduce_scatter, all_reduce, or send, recv; other: of a later NCCL"},
    {"ml_nccl_bus* ml_nccl_operation*", "size scope", "", "range of the messages' sizes; node, or network if the group has ranks on other machines"},
    {"ml_nccl_recorded* ml_nccl_lost*", "kind", "collective point_to_point", ""},
    {"ml_flight_recorder_*", "prefix", "", "beginning of the names of the dumps' files"},
    {"ml_flight_recorder_collective", "group description", "", "name of the process group; the description that the job gave it"},
    {"ml_flight_recorder_collective", "state", "enqueued started completed", ""},
    {"ml_server_*", "server", "", "kind of the server: vllm, sglang, tgi, triton, llamacpp and others of [model-servers.md](model-servers.md)"},
    {"ml_server_*", "port host", "", "TCP port; host, unless it is this machine"},
    {"ml_server_tokens_total", "kind", "input output", "tokens of requests; of answers"},
    {"ml_server_info", "model", "", "model that the server has loaded"},

    // The daemon
    {"gpumeter_build_info", "version revision branch compiler", "", ""},
    {"gpumeter_collector_* gpumeter_values_denied gpumeter_sample_duration_seconds gpumeter_read_errors_total", "collector", "", "nvidia, amd, intel, gaudi, neuron, drm or simulated"},
    {"gpumeter_values_denied", "what drop_in", "", "name of the values; the file that permits them"},
    {"gpumeter_part_up", "part", "", "name of the part"},
    {"gpumeter_pci_devices gpumeter_devices_expected", "vendor", "", "vendor of the GPUs"},
    {"gpumeter_read_errors_total", "status", "unsupported gone timeout denied failed out_of_range", "the source no longer has the value; the device was removed; the driver gave up; no permission; any other error; an impossible number"},
    {"gpumeter_names_source_*", "source", "pods_api pod_resources cri logs", "the kubelet's Pods API; its pod-resources; the container runtime; the names of the pods' logs"},
    {"gpumeter_names_source_errors_total", "reason", "unavailable timeout", "no socket, no permission, or a closed connection; no answer in time"},
    {"gpumeter_names_source_errors_total", "reason", "rate_limited not_ready unimplemented refused", "the kubelet's limit; it has just started; the server lacks the method; any other status"},
    {"gpumeter_names_source_errors_total", "reason", "malformed", "not the expected message, or longer than the limit"},
    {"gpumeter_nccl_state", "user", "", "owner of the processes"},
    {"gpumeter_nccl_state", "state", "asked failed old_version unknown_version no_permission", ""},
    {"gpumeter_nccl_files", "source", "inspector flight_recorder", "NCCL Inspector; PyTorch's flight recorder"},
    {"gpumeter_nccl_files", "state", "read torn stale foreign unknown_gpu invalid", ""},
    {"gpumeter_page_*", "page", "", "name of the file without .prom"},
    {"gpumeter_page_*", "author", "", "owner of the file; absent for root and programs of gpumeter"},
    {"gpumeter_http_requests_total", "code", "", "HTTP status of the answer"},
    {"gpumeter_jobs_dropped_total", "reason", "too_long too_many_lines malformed", "longer than 64 KiB; after the 512th line of a datagram; no line of DogStatsD or MLLOG"},
    {"gpumeter_jobs_dropped_total", "reason", "bad_value bad_timestamp bad_label", "not a number, or impossible for the metric; more than an hour from now; outside the label's closed set"},
    {"gpumeter_jobs_dropped_total", "reason", "unknown_metric wrong_type", "a metric or event outside the vocabulary; a type that the metric does not accept"},
    {"gpumeter_jobs_dropped_total", "reason", "rate_limit series_limit connections", "more lines than the user's rate; no room for another series; a connection beyond the limit"},
    {"gpumeter_jobs_dropped_total", "reason", "user identity", "a user that the configuration does not admit; a uid that the process does not have"},
    {"gpumeter_jobs_dropped_total", "reason", "client", "the client lost the values: rejected, or without room while the daemon did not read"},
    {"gpumeter_jobs_dropped_total", "reason", "device stop", "a benchmark's result of no known GPU; still queued when the daemon ended"},
};
// clang-format on

}  // namespace gpumeter::catalog
