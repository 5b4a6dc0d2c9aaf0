"""Memory of the framework's allocator on this process's devices. Used only if the job has already imported the framework and uses a
device; this module imports nothing, initialises nothing and does not wait for a device."""
from __future__ import annotations

import sys
from typing import Any, Callable, Dict, List, Optional

from ._guard import say_once
from ._outbox import FLUSH_SECONDS, REMIND_SECONDS, Outbox
from ._wire import Number

# allocated, reserved and peak in bytes, ooms: failed allocations so far. A missing key: the framework does not report it.
Usage = Dict[str, Number]
Source = Callable[[], Usage]
STATES = ("allocated", "reserved", "peak")


class Allocator:
    """Reads at most once a second, before the lines are sent."""

    def __init__(self, out: Outbox) -> None:
        self._out = out
        self._sources: List[Source] = [torch_usage]
        self._due = self._remind_at = 0.0
        self._sent: Usage = {}
        self._ooms = int(self._read().get("ooms", 0))  # those before the run are not the run's
        self._counts = False  # ml.oom was sent

    def watch(self, source: Source) -> None:
        """Adds a framework that is asked only if the job uses its callback."""
        if source not in self._sources:
            self._sources.append(source)

    def report(self, last: bool = False) -> None:
        """Puts the values that have changed, and all of them once a minute."""
        now = self._out.clock()
        if now < self._due and not last:
            return
        self._due = now + FLUSH_SECONDS
        usage = self._read()
        reminds = bool(usage) and now >= self._remind_at
        if reminds:
            self._remind_at = now + REMIND_SECONDS
        for state in STATES:
            value = usage.get(state)
            if value is not None and (reminds or value != self._sent.get(state)):
                self._out.put("ml.memory", "g", value, f"{self._out.tags},state:{state}")
        self._sent = usage
        if "ooms" in usage:
            self._count_ooms(int(usage["ooms"]))

    def failed(self) -> None:
        """An allocation failed. A framework that counts these itself has counted this one."""
        before = self._ooms
        self.report(last=True)
        if self._ooms == before:
            self._counts = True
            self._out.put("ml.oom", "c", 1, self._out.tags)

    def _count_ooms(self, total: int) -> None:
        """The first count is sent even if it is 0, so that the first failure is an increase. The framework may start again from 0."""
        grown = total - self._ooms if total >= self._ooms else total
        self._ooms = total
        if grown or not self._counts:
            self._counts = True
            self._out.put("ml.oom", "c", grown, self._out.tags)

    def _read(self) -> Usage:
        """The sum over the sources. A source that raises is not asked again."""
        total: Usage = {}
        for source in list(self._sources):
            try:
                _add(total, source())
            except Exception as error:
                self._sources.remove(source)
                say_once("memory of the allocator", error)
        return total


def _add(total: Usage, more: Usage) -> None:
    for key, value in more.items():
        total[key] = total.get(key, 0) + value


def torch_usage() -> Usage:
    """All CUDA (or ROCm) and XPU devices that the process sees."""
    total: Usage = {}
    torch = sys.modules.get("torch")
    for name in ("cuda", "xpu"):
        device = getattr(torch, name, None)
        read = getattr(device, "memory_stats_as_nested_dict", None)
        if device is None or read is None or not device.is_initialized():
            continue
        for index in range(device.device_count()):
            _add(total, _of_torch(read(index)))
    return total


def _of_torch(stats: Dict[str, Any]) -> Usage:
    if not stats:
        return {}
    usage: Usage = {"allocated": stats["allocated_bytes"]["all"]["current"], "reserved": stats["reserved_bytes"]["all"]["current"],
                    "peak": stats["allocated_bytes"]["all"]["peak"]}
    return {**usage, "ooms": stats["num_ooms"]} if "num_ooms" in stats else usage


def jax_usage() -> Usage:
    """JAX's local devices; those of a CPU report nothing."""
    total: Usage = {}
    jax = sys.modules.get("jax")
    for device in jax.local_devices() if jax else ():
        stats = device.memory_stats() or {}
        known = (("allocated", "bytes_in_use"), ("reserved", "pool_bytes"), ("peak", "peak_bytes_in_use"))
        _add(total, {state: stats[key] for state, key in known if key in stats})
    return total


def tensorflow_usage() -> Usage:
    total: Usage = {}
    tensorflow = sys.modules.get("tensorflow")
    config: Any = getattr(tensorflow, "config", None)
    for device in config.list_logical_devices("GPU") if config is not None else ():
        info = config.experimental.get_memory_info(device.name.replace("/device:", ""))
        _add(total, {"allocated": info["current"], "peak": info["peak"]})
    return total


def is_out_of_memory(error: Optional[BaseException]) -> bool:
    """An allocation of device memory that failed, by torch, CuPy, TensorFlow or JAX."""
    if error is None:
        return False
    names = {kind.__name__ for kind in type(error).__mro__}
    if "OutOfMemoryError" in names:
        return True
    text = str(error)
    is_exhausted = "ResourceExhaustedError" in names or "RESOURCE_EXHAUSTED" in text
    return is_exhausted and ("OOM" in text or "memory" in text)
