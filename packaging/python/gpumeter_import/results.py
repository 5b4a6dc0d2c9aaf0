"""The results of a file about GPUs, and the lines that the daemon takes (docs/benchmarks.md, "Results of benchmarks")."""
from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import DefaultDict, Dict, NamedTuple, Optional, Tuple


class Unit(NamedTuple):
    base: str  # the label `unit`
    scale: float


BYTES_PER_SECOND, FLOPS, SECONDS, OPERATIONS = "bytes_per_second", "flops", "seconds", "operations_per_second"
_UNITS = {
    "b/s": Unit(BYTES_PER_SECOND, 1), "gb/s": Unit(BYTES_PER_SECOND, 1e9), "gbps": Unit(BYTES_PER_SECOND, 1e9),
    "flops": Unit(FLOPS, 1), "gflops": Unit(FLOPS, 1e9), "tflops": Unit(FLOPS, 1e12),
    "ops": Unit(OPERATIONS, 1), "giops": Unit(OPERATIONS, 1e9), "gops": Unit(OPERATIONS, 1e9), "tops": Unit(OPERATIONS, 1e12),
    "s": Unit(SECONDS, 1), "ms": Unit(SECONDS, 1e-3), "us": Unit(SECONDS, 1e-6), "usec": Unit(SECONDS, 1e-6), "ns": Unit(SECONDS, 1e-9),
}
# The daemon's limits: results of a GPU (collectors/jobs/benchmarks), and bytes of a label.
MOST_RESULTS = 256
_MOST_BYTES = 64


def find_unit(name: str) -> Optional[Unit]:
    """The base unit of a file's unit; None if it is not known."""
    return _UNITS.get(name.lower())


class GpuResults:
    """The results of one GPU. If a file has several values of one rate, as for vector widths or peers, the highest counts."""

    def __init__(self) -> None:
        self.pci = ""  # "0000:0c:00.0"; empty: the file does not give it
        self.failed: Optional[bool] = None  # the file's verdict; None: it has none
        self.values: Dict[Tuple[str, str], float] = {}  # by metric and tags

    def __bool__(self) -> bool:
        return bool(self.values) or self.failed is not None

    def flops(self, dtype: str, backend: str, value: float) -> None:
        """Operations per second of matrix multiplication; `dtype` must be one of the daemon's."""
        self._keep_best("flops", value, dtype=dtype, backend=_tag(backend))

    def memory_bandwidth(self, operation: str, bytes_per_second: float) -> None:
        """`operation`: read, write, copy or triad; bytes read and written are added."""
        self._keep_best("memory_bandwidth", bytes_per_second, operation=operation)

    def transfer(self, direction: str, bytes_per_second: float) -> None:
        """`direction`: host_to_device, device_to_host or device_to_device."""
        self._keep_best("transfer", bytes_per_second, direction=direction)

    def result(self, test: str, unit: str, value: float) -> None:
        """Anything else. The last value of a test counts."""
        self._keep("result", value, test=_tag(test), unit=_tag(unit))

    def best_result(self, test: str, unit: str, value: float) -> None:
        """The same, but the highest value of a test counts."""
        self._keep_best("result", value, test=_tag(test), unit=_tag(unit))

    def verdict(self, has_failed: bool) -> None:
        """A failure of one part is one of the whole."""
        self.failed = bool(self.failed) or has_failed

    def lines(self, device: str, suite: str, timestamp: float) -> str:
        """One datagram. `device`: the tag that names the GPU, such as "gpu:3". `timestamp`: Unix time in seconds."""
        values = [*self.values.items(), (("timestamp", ""), timestamp)]
        if self.failed is not None:
            values.insert(-1, (("failed", ""), float(self.failed)))
        # 12 digits are more than any file has; a scaled value gets no rounding error.
        return "".join(f"gpu.benchmark.{metric}:{value:.12g}|g|#{device},suite:{suite}{tags}\n" for (metric, tags), value in values)

    def _keep(self, metric: str, value: float, **tags: str) -> None:
        key = metric, "".join(f",{name}:{tag}" for name, tag in tags.items())
        if key in self.values or len(self.values) <= MOST_RESULTS:  # with more, the file is refused
            self.values[key] = value

    def _keep_best(self, metric: str, value: float, **tags: str) -> None:
        key = metric, "".join(f",{name}:{tag}" for name, tag in tags.items())
        self._keep(metric, max(value, self.values.get(key, value)), **tags)


@dataclass
class Sheet:
    """The results of a file."""
    gpus: DefaultDict[int, GpuResults] = field(default_factory=lambda: defaultdict(GpuResults))  # by the file's own number of the GPU
    is_of_machine: bool = False  # `gpus` has one entry, which is about all GPUs that took part
    timestamp: Optional[float] = None  # Unix time in seconds
    suite: str = ""


def _tag(raw: str) -> str:
    """The value of a tag ends at a comma, and the tags at a bar. The daemon cuts a label at 64 bytes."""
    text = re.sub(r"[\x00-\x20,|]+", " ", raw).strip(" ")
    encoded = text.encode()
    if len(encoded) <= _MOST_BYTES:
        return text
    # The start, and a hash that keeps texts different that differ only at their ends: FNV-1a with 32 bits, as the daemon has it (base/text).
    digest = 2166136261
    for byte in raw.encode():
        digest = (digest ^ byte) * 16777619 & 0xFFFFFFFF
    return encoded[:_MOST_BYTES - 9].decode(errors="ignore") + f"~{digest:08x}"


def pci_address(text: str) -> str:
    """"00000008:06:00", "0000:0C:00.0", "05:0.0" or "0c:00.0" as sysfs writes it; empty if the text is no address."""
    found = re.fullmatch(r"(?:([0-9a-fA-F]{1,8}):)?([0-9a-fA-F]{1,8}):([0-9a-fA-F]{1,8})(?:\.([0-9a-fA-F]{1,8}))?", text)
    domain, bus, device, function = (int(part or "0", 16) for part in found.groups()) if found else (0, 0x100, 0, 0)
    return "" if bus > 0xFF or device > 0x1F or function > 7 else f"{domain:04x}:{bus:02x}:{device:02x}.{function}"
