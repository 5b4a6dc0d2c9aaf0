"""The comparisons with nvidia-smi, and the tolerance between two readings of the same second."""
from __future__ import annotations

from typing import NamedTuple

MIB = 2.0**20
MHZ = 1e6


class Row(NamedTuple):
    field: str  # nvidia-smi's
    family: str
    labels: dict[str, str] = {}
    unit: float = 1  # nvidia-smi's, in ours
    absolute: float = 0  # the tolerance, in our unit: absolute + relative x value
    relative: float = 0
    moving: bool = False  # it may change between two readings: half of the rounds have to agree, else all
    state: str = ""  # the label that holds nvidia-smi's word, of a series that is 1
    label: str = ""  # the label of `family` that holds nvidia-smi's text


def moves(field: str, family: str, absolute: float, relative: float = 0, unit: float = 1, **labels: str) -> Row:
    return Row(field, family, labels, unit, absolute, relative, True)


def stays(field: str, family: str, absolute: float = 0, unit: float = 1, **labels: str) -> Row:
    return Row(field, family, labels, unit, absolute)


def reason(field: str, word: str) -> Row:
    return moves(f"clocks_event_reasons.{field}", "gpu_throttle_reason_active", 0, reason=word)


def mode(field: str, name: str) -> Row:
    return Row(field, "gpu_mode", {"mode": name}, state="state")


IDENTITY = [
    Row("name", "gpu_info", label="model"), Row("driver_version", "gpu_info", label="driver_version"),
    Row("vbios_version", "gpu_info", label="vbios_version"), Row("serial", "gpu_info", label="serial"),
    Row("pci.bus_id", "gpu_info", label="pci_address"), Row("index", "gpu_info", label="vendor_index"),
    mode("persistence_mode", "persistence"), mode("ecc.mode.current", "ecc"), mode("ecc.mode.pending", "ecc_pending"),
    mode("mig.mode.current", "mig"), mode("mig.mode.pending", "mig_pending"), mode("compute_mode", "compute"),
    mode("display_active", "display"), Row("fabric.state", "gpu_fabric_state", state="state"),
    Row("gpu_recovery_action", "gpu_recovery_action", state="action"),
]
LIMITS = [
    stays("memory.total", "gpu_memory_size_bytes", MIB, MIB, memory="vram"),
    stays("enforced.power.limit", "gpu_power_limit_watts", 0.01, limit="enforced"),
    stays("power.default_limit", "gpu_power_limit_watts", 0.01, limit="default"),
    stays("power.min_limit", "gpu_power_limit_watts", 0.01, limit="min"),
    stays("power.max_limit", "gpu_power_limit_watts", 0.01, limit="max"),
    stays("clocks.max.graphics", "gpu_clock_max_hertz", 0, MHZ, clock="graphics"),
    stays("clocks.max.sm", "gpu_clock_max_hertz", 0, MHZ, clock="sm"),
    stays("clocks.max.memory", "gpu_clock_max_hertz", 0, MHZ, clock="memory"),
    stays("pcie.link.gen.max", "gpu_pcie_link_max_generation"), stays("pcie.link.width.max", "gpu_pcie_link_max_lanes"),
]
MOVING = [
    # Driver and daemon average over different windows of up to a second.
    moves("utilization.gpu", "gpu_utilization_ratio", 0.15, unit=0.01),
    moves("utilization.memory", "gpu_memory_controller_utilization_ratio", 0.15, unit=0.01),
    moves("utilization.encoder", "gpu_engine_utilization_ratio", 0.15, unit=0.01, engine="encode"),
    moves("utilization.decoder", "gpu_engine_utilization_ratio", 0.15, unit=0.01, engine="decode"),
    moves("utilization.jpeg", "gpu_engine_utilization_ratio", 0.15, unit=0.01, engine="jpeg"),
    moves("utilization.ofa", "gpu_engine_utilization_ratio", 0.15, unit=0.01, engine="optical_flow"),
    # nvidia-smi is a process on the GPU for as long as it asks.
    moves("memory.used", "gpu_memory_used_bytes", 32 * MIB, unit=MIB, memory="vram"),
    moves("memory.free", "gpu_memory_free_bytes", 32 * MIB, unit=MIB, memory="vram"),
    moves("memory.reserved", "gpu_memory_reserved_bytes", 2 * MIB, unit=MIB, memory="vram"),
    moves("power.draw", "gpu_power_watts", 5, 0.05), moves("power.draw.instant", "gpu_power_instant_watts", 10, 0.15),
    moves("temperature.gpu", "gpu_temperature_celsius", 2, sensor="core"),
    moves("temperature.memory", "gpu_temperature_celsius", 2, sensor="memory"),
    moves("temperature.gpu.tlimit", "gpu_temperature_margin_celsius", 2, sensor="core"),
    moves("clocks.current.graphics", "gpu_clock_hertz", 30 * MHZ, 0.03, MHZ, clock="graphics"),
    moves("clocks.current.sm", "gpu_clock_hertz", 30 * MHZ, 0.03, MHZ, clock="sm"),
    moves("clocks.current.memory", "gpu_clock_hertz", 10 * MHZ, 0, MHZ, clock="memory"),
    moves("clocks.current.video", "gpu_clock_hertz", 30 * MHZ, 0.03, MHZ, clock="video"),
    moves("pstate", "gpu_performance_state", 0), moves("fan.speed", "gpu_fan_speed_ratio", 0.05, unit=0.01, fan="0"),
    moves("pcie.link.gen.current", "gpu_pcie_link_generation", 0), moves("pcie.link.width.current", "gpu_pcie_link_lanes", 0),
    reason("sw_power_cap", "sw_power_cap"), reason("hw_slowdown", "hw_slowdown"), reason("sync_boost", "sync_boost"),
    reason("sw_thermal_slowdown", "sw_thermal"), reason("hw_thermal_slowdown", "hw_thermal"),
    reason("hw_power_brake_slowdown", "hw_power_brake"), reason("applications_clocks_setting", "applications_clocks"),
]
ERRORS = [
    stays("ecc.errors.corrected.volatile.total", "gpu_memory_errors_total", severity="corrected"),
    stays("ecc.errors.uncorrected.volatile.total", "gpu_memory_errors_total", severity="uncorrected"),
    stays("ecc.errors.corrected.aggregate.total", "gpu_memory_lifetime_errors_total", severity="corrected"),
    stays("ecc.errors.uncorrected.aggregate.total", "gpu_memory_lifetime_errors_total", severity="uncorrected"),
    stays("retired_pages.single_bit_ecc.count", "gpu_retired_pages", cause="single_bit"),
    stays("retired_pages.double_bit.count", "gpu_retired_pages", cause="double_bit"),
    stays("retired_pages.pending", "gpu_retired_pages_pending"),
    stays("remapped_rows.correctable", "gpu_remapped_rows", cause="corrected"),
    stays("remapped_rows.uncorrectable", "gpu_remapped_rows", cause="uncorrected"),
    stays("remapped_rows.pending", "gpu_row_remap_pending"), stays("remapped_rows.failure", "gpu_row_remap_failed"),
    *(stays(f"remapped_rows.histogram.{word}", "gpu_row_remap_banks", availability=word)
      for word in ("max", "high", "partial", "low", "none")),
]
# nvidia-smi: microseconds since the driver was loaded, whatever unit NVML has. gpumeter: since the daemon knows the card.
REASON_TIMES = {f"clocks_event_reasons_counters.{field}": word for field, word in (
    ("sw_power_cap", "sw_power_cap"), ("sync_boost", "sync_boost"), ("sw_thermal_slowdown", "sw_thermal"),
    ("hw_thermal_slowdown", "hw_thermal"), ("hw_power_brake_slowdown", "hw_power_brake"))}
ROWS = IDENTITY + LIMITS + MOVING + ERRORS
