"""The GPUs of a capture's `nvidia-smi --query-gpu`, as the series that a page must have.

The CSV is another rendering than `nvidia-smi -q`, of which scenarios are made, and some moments older or younger. What
stands still is told by the CSV; what moves by `-q`, where the CSV says that it is there too.
"""
import csv
import re
from dataclasses import dataclass, field

from nvidia_smi_tree import Node, parse, section

MIB, MHZ, PERCENT = 1 << 20, 1e6, 0.01
Series = tuple[str, frozenset]  # family, labels in addition to the device's

# Column -> family, labels, scale.
STEADY = {
    "memory.total": ("gpu_memory_size_bytes", {"memory": "vram"}, MIB),
    "memory.reserved": ("gpu_memory_reserved_bytes", {"memory": "vram"}, MIB),
    "enforced.power.limit": ("gpu_power_limit_watts", {"limit": "enforced"}, 1),
    "power.default_limit": ("gpu_power_limit_watts", {"limit": "default"}, 1),
    "power.min_limit": ("gpu_power_limit_watts", {"limit": "min"}, 1),
    "power.max_limit": ("gpu_power_limit_watts", {"limit": "max"}, 1),
    "clocks.max.graphics": ("gpu_clock_max_hertz", {"clock": "graphics"}, MHZ),
    "clocks.max.sm": ("gpu_clock_max_hertz", {"clock": "sm"}, MHZ),
    "clocks.max.memory": ("gpu_clock_max_hertz", {"clock": "memory"}, MHZ),
    "pcie.link.gen.max": ("gpu_pcie_link_max_generation", {}, 1),
    "pcie.link.width.max": ("gpu_pcie_link_max_lanes", {}, 1),
    "retired_pages.single_bit_ecc.count": ("gpu_retired_pages", {"cause": "single_bit"}, 1),
    "retired_pages.double_bit.count": ("gpu_retired_pages", {"cause": "double_bit"}, 1),
    "retired_pages.pending": ("gpu_retired_pages_pending", {}, 1),
    "remapped_rows.correctable": ("gpu_remapped_rows", {"cause": "corrected"}, 1),
    "remapped_rows.uncorrectable": ("gpu_remapped_rows", {"cause": "uncorrected"}, 1),
    "remapped_rows.pending": ("gpu_row_remap_pending", {}, 1),
    "remapped_rows.failure": ("gpu_row_remap_failed", {}, 1),
} | {f"remapped_rows.histogram.{name}": ("gpu_row_remap_banks", {"availability": name}, 1)
     for name in ("max", "high", "partial", "low", "none")}
# ... and the paths in `-q`; the first path with a value counts.
POWER = "GPU Power Readings/"
MOVING = {
    "utilization.gpu": ("gpu_utilization_ratio", {}, PERCENT, "Utilization/GPU"),
    "utilization.memory": ("gpu_memory_controller_utilization_ratio", {}, PERCENT, "Utilization/Memory"),
    "utilization.encoder": ("gpu_engine_utilization_ratio", {"engine": "encode"}, PERCENT, "Utilization/Encoder"),
    "utilization.decoder": ("gpu_engine_utilization_ratio", {"engine": "decode"}, PERCENT, "Utilization/Decoder"),
    "utilization.jpeg": ("gpu_engine_utilization_ratio", {"engine": "jpeg"}, PERCENT, "Utilization/JPEG"),
    "utilization.ofa": ("gpu_engine_utilization_ratio", {"engine": "optical_flow"}, PERCENT, "Utilization/OFA"),
    "memory.used": ("gpu_memory_used_bytes", {"memory": "vram"}, MIB, "FB Memory Usage/Used"),
    "memory.free": ("gpu_memory_free_bytes", {"memory": "vram"}, MIB, "FB Memory Usage/Free"),
    "power.draw": ("gpu_power_watts", {}, 1, POWER + "Average Power Draw", POWER + "Power Draw", "Power Readings/Power Draw",
                   POWER + "Instantaneous Power Draw"),
    "power.draw.instant": ("gpu_power_instant_watts", {}, 1, POWER + "Instantaneous Power Draw"),
    "module.power.draw.average": ("gpu_power_rail_watts", {"rail": "module"}, 1, "Module Power Readings/Average Power Draw"),
    "temperature.gpu": ("gpu_temperature_celsius", {"sensor": "core"}, 1, "Temperature/GPU Current Temp"),
    "temperature.memory": ("gpu_temperature_celsius", {"sensor": "memory"}, 1, "Temperature/Memory Current Temp"),
    "pstate": ("gpu_performance_state", {}, 1, "Performance State"),
    "fan.speed": ("gpu_fan_speed_ratio", {"fan": "0"}, PERCENT, "Fan Speed"),
    "pcie.link.gen.current": ("gpu_pcie_link_generation", {}, 1, "PCI/GPU Link Info/PCIe Generation/Current"),
    "pcie.link.width.current": ("gpu_pcie_link_lanes", {}, 1, "PCI/GPU Link Info/Link Width/Current"),
} | {f"clocks.current.{clock}": ("gpu_clock_hertz", {"clock": clock}, MHZ, f"Clocks/{title}")
     for clock, title in (("graphics", "Graphics"), ("sm", "SM"), ("memory", "Memory"), ("video", "Video"))}
# 1 for the word that holds: column -> family, labels, the label that names it.
WORDS = {"persistence_mode": "persistence", "display_active": "display", "ecc.mode.current": "ecc",
         "ecc.mode.pending": "ecc_pending", "mig.mode.current": "mig", "mig.mode.pending": "mig_pending",
         "compute_mode": "compute"}
ONE_OF = {column: ("gpu_mode", {"mode": mode}, "state") for column, mode in WORDS.items()} | {
    "gpu_recovery_action": ("gpu_recovery_action", {}, "action"), "fabric.state": ("gpu_fabric_state", {}, "state"),
    "fabric.health.summary": ("gpu_fabric_health", {}, "state")}
# Word in the CSV -> label values, and title in `-q`.
REASONS = {"sw_power_cap": ("power", "sw_power_cap", "SW Power Cap"), "sync_boost": ("sync", "sync_boost", "Sync Boost"),
           "applications_clocks_setting": ("software", "applications_clocks", "Applications Clocks Setting"),
           "hw_power_brake_slowdown": ("power", "hw_power_brake", "HW Power Brake Slowdown"),
           "sw_thermal_slowdown": ("thermal", "sw_thermal", "SW Thermal Slowdown"),
           "hw_thermal_slowdown": ("thermal", "hw_thermal", "HW Thermal Slowdown")}
ECC_PARTS = {"l1_cache": "l1", "l2_cache": "l2", "register_file": "register_file", "texture_memory": "texture",
             "cbu": "cbu"}
YES_NO = {"yes": 1.0, "no": 0.0, "active": 1.0, "not active": 0.0}


def number(text: str | None) -> float | None:
    """31 %, 98.14 W, 16x, P2, Yes; None for anything else."""
    said = (text or "").strip().lower()
    found = re.match(r"p?(-?\d+(\.\d+)?)x?\b", said)
    return float(found[1]) if found else YES_NO.get(said)


def series(family: str, labels: dict[str, str]) -> Series:
    return family, frozenset(labels.items())


@dataclass
class Gpu:
    """One row of the CSV. `values`: what a series must be, None where it must not be there."""
    row: dict[str, str]
    tree: Node
    values: dict[Series, float | None] = field(default_factory=dict)
    one_of: dict[Series, tuple[str, str | None]] = field(default_factory=dict)  # label, the value that holds
    moved: list[float] = field(default_factory=list)  # how far the CSV is from `-q`, as shares
    torn: int = 0  # values that only one of the two has

    def __post_init__(self) -> None:
        for column, (family, labels, scale) in STEADY.items():
            if "histogram" in column and self.column(column) is not None and not self.tree.at("Remapped Rows").children:
                self.torn += 1  # in MIG mode `-q` leaves out the whole group
            else:
                self.expect(series(family, labels), self.column(column), scale, column in self.row)
        for column, (family, labels, scale, *paths) in MOVING.items():
            self.expect_moving(column, series(family, labels), scale, paths)
        self.reasons()
        self.margin()
        self.ecc()
        for column, (family, labels, label) in ONE_OF.items():
            if column in self.row:
                word = self.row[column].lower().replace(" ", "_")
                self.one_of[series(family, labels)] = (label, None if "n/a" in word or word.startswith("[") else word)

    def column(self, name: str) -> float | None:
        return number(self.row.get(name))

    def expect(self, where: Series, value: float | None, scale: float, is_told: bool = True) -> None:
        if is_told:
            self.values[where] = None if value is None else value * scale

    def expect_moving(self, column: str, where: Series, scale: float, paths: list[str]) -> None:
        told = [number(self.tree.at(*path.split("/")).value) for path in paths]
        value, then = next((one for one in told if one is not None), None), self.column(column)
        if column not in self.row:
            return
        if (value is None) != (then is None):
            self.torn += 1
            return
        self.expect(where, value, scale)
        if value and then is not None:
            self.moved.append(abs(then - value) / value)

    def reasons(self) -> None:
        titles = ("Clocks Event Reasons", "Clocks Throttle Reasons")
        node = next((self.tree.at(title) for title in titles if self.tree.all(title)), Node(""))
        for word, (cause, reason, title) in REASONS.items():
            column = f"clocks_event_reasons.{word}"
            if column in self.row:
                self.expect(series("gpu_throttle_reason_active", {"cause": cause, "reason": reason}),
                            number(node.deep(title).value) if self.column(column) is not None else None, 1)

    def margin(self) -> None:
        """Without the driver's own margin the page has one only if there are thresholds; then nothing is compared."""
        node = self.tree.at("Temperature").deep("GPU Current T.Limit Temp", "GPU T.Limit Temp")
        if self.column("temperature.gpu.tlimit") is not None and number(node.value) is not None:
            self.expect(series("gpu_temperature_margin_celsius", {"sensor": "core"}), number(node.value), 1)

    def ecc(self) -> None:
        """Of a card without ECC the CSV has zeros of what `-q` calls N/A."""
        has_ecc = "n/a" not in self.row.get("ecc.mode.current", "n/a").lower()
        for period, family in (("volatile", "gpu_memory_errors_total"), ("aggregate", "gpu_memory_lifetime_errors_total")):
            for severity in ("corrected", "uncorrected"):
                base = f"ecc.errors.{severity}.{period}."
                if base + "sram" not in self.row:
                    continue
                halves = [self.column(base + "sram." + part) for part in ("parity", "secded")]
                whole, dram = self.column(base + "sram"), self.column(base + "dram")
                sram = whole if whole is not None else sum(halves) if None not in halves else None
                found = {"sram": sram, "dram": dram if dram is not None else self.column(base + "device_memory")}
                found |= {name: self.column(base + part) if sram is None else None for part, name in ECC_PARTS.items()}
                for location, count in found.items():
                    self.expect(series(family, {"severity": severity, "location": location}), count if has_ecc else None, 1)


@dataclass
class Instance:
    """A line of the table of MIG devices, and its use by `-q`."""
    gpu: int
    gpu_instance: str
    size: float
    bar1: float
    multiprocessors: str
    used: float | None


def gpus(capture: str, which: str) -> list[Gpu]:
    rows = csv.reader((section(capture, f"{which} :: query-gpu") or "").strip().splitlines(), skipinitialspace=True)
    head, *body = list(rows) or [[]]
    columns = [re.sub(r" \[.*\]$", "", name) for name in head]
    trees = parse(section(capture, f"{which} :: query (-q)") or "").all("GPU")
    return [Gpu(dict(zip(columns, row)), tree) for row, tree in zip(body, trees) if len(row) == len(columns)]


def instances(capture: str, which: str) -> list[Instance]:
    table = section(capture, f"{which} :: nvidia-smi (default table)") or ""
    trees = parse(section(capture, f"{which} :: query (-q)") or "").all("GPU")
    found = re.findall(r"\|\s+(\d+)\s+(\d+)\s+\d+\s+\d+\s+\|\s+\d+MiB\s*/\s*(\d+)MiB\s*\|\s*(\d+).*\n"
                       r"\|\s+\|\s+\d+MiB\s*/\s*(\d+)MiB", table)
    return [Instance(int(gpu), gi, int(size) * MIB, int(bar1) * MIB, sms, used_by(trees[int(gpu)], gi))
            for gpu, gi, size, sms, bar1 in found]


def used_by(gpu: Node, gpu_instance: str) -> float | None:
    for node in gpu.all("MIG Device"):
        if node.at("GPU Instance ID").value == gpu_instance:
            memory = node.at("FB Memory Usage") if node.all("FB Memory Usage") else node.at("Shared FB Memory Usage")
            used = number(memory.at("Used").value)
            return None if used is None else used * MIB
    return None
