"""The driver's library, called directly by ctypes without a header: the cost of each call, and values that no page has."""
from __future__ import annotations

import ctypes
import time
from ctypes import byref, c_double, c_int, c_longlong, c_uint, c_ulonglong, c_void_p
from typing import Callable

# Field ids (nvml.h: NVML_FI_DEV_*).
ENERGY, POWER_AVERAGE, POWER_INSTANT = 83, 185, 186
# PERF_POLICY_POWER .. PERF_POLICY_BASE_CLOCKS, and the hardware's own counters of 575 and newer.
THROTTLE_TIMES = {74: "power", 75: "thermal", 76: "sync_boost", 77: "board_limit", 78: "low_util", 79: "reliability",
                  80: "app_clocks", 81: "base_clocks", 269: "sw_thermal", 270: "hw_thermal", 271: "hw_power_brake"}
# Each second's batch of the daemon, more or less.
BATCH = [ENERGY, POWER_AVERAGE, POWER_INSTANT, 82, *THROTTLE_TIMES, 138, 139, 197, 198]
SUCCESS, NOT_FOUND = 0, 6


class FieldValue(ctypes.Structure):
    class Value(ctypes.Union):
        _fields_ = [("real", c_double), ("uint", c_uint), ("ulonglong", c_ulonglong), ("longlong", c_longlong), ("sint", c_int)]

    _fields_ = [("field", c_uint), ("scope", c_uint), ("timestamp", c_longlong), ("latency_usec", c_longlong), ("type", c_uint),
                ("result", c_uint), ("value", Value)]

    def number(self) -> float | None:
        if self.result != SUCCESS:
            return None
        return float({0: self.value.real, 1: self.value.uint, 4: self.value.longlong, 5: self.value.sint}.get(self.type, self.value.ulonglong))


class Nvml:
    """One GPU. Raises OSError where the library is not there, and RuntimeError where it does not start."""

    def __init__(self, uuid: str) -> None:
        self.library = ctypes.CDLL("libnvidia-ml.so.1")
        self._must(self.library.nvmlInit_v2())
        self.device = self._handle(uuid)

    def _handle(self, uuid: str) -> c_void_p:
        count, device, text = c_uint(), c_void_p(), ctypes.create_string_buffer(96)
        self._must(self.library.nvmlDeviceGetCount_v2(byref(count)))
        for index in range(count.value):
            self._must(self.library.nvmlDeviceGetHandleByIndex_v2(c_uint(index), byref(device)))
            self._must(self.library.nvmlDeviceGetUUID(device, text, c_uint(len(text))))
            if text.value.decode() == uuid:
                return device
        raise RuntimeError(f"NVML has no GPU {uuid}")

    @staticmethod
    def _must(result: int) -> None:
        if result != SUCCESS:
            raise RuntimeError(f"NVML error {result}")

    def close(self) -> None:
        self.library.nvmlShutdown()

    def has(self, name: str) -> bool:
        return hasattr(self.library, name)

    def fields(self, ids: list[int]) -> dict[int, float | None]:
        values = (FieldValue * len(ids))(*[FieldValue(field=one) for one in ids])
        if self.library.nvmlDeviceGetFieldValues(self.device, c_int(len(ids)), values) != SUCCESS:
            return dict.fromkeys(ids)
        return {value.field: value.number() for value in values}

    def unknown_field(self) -> int:
        """The error code that an id which no driver has gets."""
        value = (FieldValue * 1)(FieldValue(field=60000))
        whole = self.library.nvmlDeviceGetFieldValues(self.device, c_int(1), value)
        return value[0].result if whole == SUCCESS else whole

    def event_reasons(self) -> int | None:
        reasons = c_ulonglong()
        name = "nvmlDeviceGetCurrentClocksEventReasons" if self.has("nvmlDeviceGetCurrentClocksEventReasons") else \
            "nvmlDeviceGetCurrentClocksThrottleReasons"
        return reasons.value if self.has(name) and getattr(self.library, name)(self.device, byref(reasons)) == SUCCESS else None

    def samples(self, kind: int) -> tuple[int, float] | None:
        """(how many the buffer of this type holds, seconds that they span)."""
        class Sample(ctypes.Structure):
            _fields_ = [("timestamp", c_ulonglong), ("value", c_ulonglong)]
        if not self.has("nvmlDeviceGetSamples"):
            return None
        count, value_type = c_uint(0), c_uint()
        get = self.library.nvmlDeviceGetSamples
        if get(self.device, c_uint(kind), c_ulonglong(0), byref(value_type), byref(count), None) != SUCCESS or count.value == 0:
            return None
        buffer = (Sample * count.value)()
        if get(self.device, c_uint(kind), c_ulonglong(0), byref(value_type), byref(count), buffer) != SUCCESS or count.value == 0:
            return None
        times = [buffer[index].timestamp for index in range(count.value)]
        return count.value, (max(times) - min(times)) / 1e6

    def calls(self) -> dict[str, Callable[[], int]]:
        """The functions that a collector calls each second, by name, as far as the library has them."""
        lib, dev = self.library, self.device
        word, other, long, block = c_uint(), c_uint(), c_ulonglong(), (c_ulonglong * 64)()
        memory = (c_ulonglong * 5)(40 | 2 << 24)  # nvmlMemory_v2_t with its version
        temperature = (c_uint * 3)(12 | 1 << 24, 0, 0)  # nvmlTemperature_v1_t
        batch = (FieldValue * len(BATCH))(*[FieldValue(field=one) for one in BATCH])
        calls = {
            "nvmlDeviceGetUtilizationRates": lambda: lib.nvmlDeviceGetUtilizationRates(dev, block),
            "nvmlDeviceGetMemoryInfo_v2": lambda: lib.nvmlDeviceGetMemoryInfo_v2(dev, memory),
            "nvmlDeviceGetPowerUsage": lambda: lib.nvmlDeviceGetPowerUsage(dev, byref(word)),
            "nvmlDeviceGetTotalEnergyConsumption": lambda: lib.nvmlDeviceGetTotalEnergyConsumption(dev, byref(long)),
            "nvmlDeviceGetTemperatureV": lambda: lib.nvmlDeviceGetTemperatureV(dev, temperature),
            "nvmlDeviceGetTemperature": lambda: lib.nvmlDeviceGetTemperature(dev, c_uint(0), byref(word)),
            "nvmlDeviceGetClockInfo": lambda: lib.nvmlDeviceGetClockInfo(dev, c_uint(1), byref(word)),
            "nvmlDeviceGetPerformanceState": lambda: lib.nvmlDeviceGetPerformanceState(dev, byref(word)),
            "nvmlDeviceGetCurrentClocksEventReasons": lambda: lib.nvmlDeviceGetCurrentClocksEventReasons(dev, byref(long)),
            "nvmlDeviceGetEncoderUtilization": lambda: lib.nvmlDeviceGetEncoderUtilization(dev, byref(word), byref(other)),
            "nvmlDeviceGetFieldValues": lambda: lib.nvmlDeviceGetFieldValues(dev, c_int(len(BATCH)), batch),
            "nvmlDeviceGetSamples": lambda: SUCCESS if self.samples(1) else NOT_FOUND,  # the size, then the buffer: two calls
        }
        calls = {name: call for name, call in calls.items() if self.has(name)}
        sample = c_void_p()
        if self.has("nvmlGpmSampleAlloc") and lib.nvmlGpmSampleAlloc(byref(sample)) == SUCCESS:
            calls["nvmlGpmSampleGet"] = lambda: lib.nvmlGpmSampleGet(dev, sample)
        return calls


def quantile(values: list[float], share: float) -> float:
    """The nearest rank."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def latencies(calls: dict[str, Callable[[], int]], times: int = 200) -> dict[str, dict[str, float]]:
    """Microseconds per call: median and p99, and the code that the last one returned."""
    found = {}
    for name, call in calls.items():
        spent, code = [], SUCCESS
        for _ in range(times):
            started = time.perf_counter()
            code = call()
            spent.append((time.perf_counter() - started) * 1e6)
            time.sleep(0.002)  # a collector does not call back to back either
        found[name] = {"median_us": quantile(spent, 0.5), "p99_us": quantile(spent, 0.99), "code": code}
    return found
