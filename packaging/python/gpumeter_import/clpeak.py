"""clpeak: the text and XML of version 1.1, the XML of version 2, the JSON of version 3."""
from __future__ import annotations

import calendar
import re
import time
from collections import Counter
from typing import NamedTuple, Optional

from .documents import Element, Json, parse_json, parse_xml
from .results import FLOPS, OPERATIONS, GpuResults, Sheet, Unit, find_unit
from .texts import MOST_GPUS, Refused, lines_of, measure, trimmed, words_of

# Tests of a vendor's library by the start of their names: XML of version 2 has "rocblas-fp", JSON of version 3 "cublas_gemm".
_LIBRARIES = {"cublas": "cublaslt", "rocblas": "rocblas", "hipblaslt": "hipblaslt", "onemkl": "onemkl"}
_DTYPES = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8", "fp4")
# By the start of a metric's name. A buffer in the host's memory is mapped without a copy: Instincts "transfer" 156 TB/s so.
_COPIES = {"enqueuewritebuffer": "host_to_device", "enqueuereadbuffer": "device_to_host", "h2d_pinned": "host_to_device", "d2h_pinned": "device_to_host",
           "enqueuemap": "", "enqueueunmap": ""}
_BACKEND = "opencl"  # of version 1.1


class Value(NamedTuple):
    """One figure, in any of the forms."""
    backend: str  # as the file has it: "OpenCL"
    test: str     # "global_memory_bandwidth"
    metric: str   # "float16"
    value: float  # in the base unit
    unit: str     # the base unit


def parse(text: str, _host: str) -> Sheet:
    start = trimmed(text[:64])
    return _parse_json(text) if start.startswith("{") else _parse_xml(text) if start.startswith("<") else _parse_text(text)


def _take(gpu: GpuResults, value: Value) -> None:
    """Puts a figure in its place:
    - reads of the device's memory, and copies by enqueueWriteBuffer, enqueueReadBuffer or pinned memory, are memory bandwidth and transfers;
    - matrix products of the vendor's library are flops;
    - all else is a result "BACKEND TEST", or "BACKEND TEST METRIC" if the metrics of the test are no widths of one vector."""
    library = next((backend for start, backend in _LIBRARIES.items() if value.test.startswith(start)), "")
    dtype = _dtype_of(value.metric) if library else ""
    is_transfer = value.test == "transfer_bandwidth"
    copy = next((direction for start, direction in _COPIES.items() if value.metric.startswith(start)), None) if is_transfer else None
    if value.test == "global_memory_bandwidth":
        gpu.memory_bandwidth("read", value.value)
    elif dtype:
        gpu.flops(dtype, library, value.value)
    elif copy:
        gpu.transfer(copy, value.value)
    elif copy is None:
        _take_result(gpu, value, has_widths=not is_transfer and _has_widths(value.test))


def _take_result(gpu: GpuResults, value: Value, has_widths: bool) -> None:
    test = f"{value.backend.lower()} {value.test}"
    # The XML of version 1.1 gives integer operations in gflops.
    unit = OPERATIONS if value.test.startswith("integer") and value.unit == FLOPS else value.unit
    if has_widths:
        gpu.best_result(test, unit, value.value)
    else:
        gpu.result(test if value.metric in ("", value.test) else f"{test} {value.metric}", unit, value.value)


def _has_widths(test: str) -> bool:
    """Its metrics are widths of one vector, or chains of one instruction."""
    return test.endswith(("_compute", "_bandwidth")) or test.startswith("integer_compute")


def _dtype_of(metric: str) -> str:
    """"fp8_e4m3" is fp8, "nvf4_e2m1" is fp4. Sparse products ("2:4") count operations that are not made."""
    if "2:4" in metric:
        return ""
    if metric.startswith(("nvf4", "mxf4")):
        return "fp4"
    return next((dtype for dtype in _DTYPES if metric == dtype or metric.startswith(f"{dtype}_")), "")


# Titles of the text of version 1.1: the test's name in the XML, and the number of its rows.
_BLOCKS = {
    "Global memory bandwidth": ("global_memory_bandwidth", 5),
    "Single-precision compute": ("single_precision_compute", 5),
    "Half-precision compute": ("half_precision_compute", 5),
    "half-precision compute": ("half_precision_compute", 5),
    "Double-precision compute": ("double_precision_compute", 5),
    "Integer compute Fast 24bit": ("integer_compute_fast", 5),
    "Integer compute": ("integer_compute", 5),
    "Transfer bandwidth": ("transfer_bandwidth", 8),
}


class _Text:
    """Reads the lines one by one. A run of some of clpeak's tests (--global-bandwidth) has fewer blocks, so a file that was cut between two
    blocks reads like one. A block has all of its rows, and a device at least one test."""

    def __init__(self) -> None:
        self.sheet, self.line, self.devices = Sheet(), 0, 0
        self.is_in_device = self.has_test = False
        self.title, self.unit, self.rows = "", Unit("", 1), 0

    def take(self, text: str) -> None:
        if not text:
            self.end_block()
        elif text.startswith("Platform:"):
            self.end_device()
        elif text.startswith("Device:"):
            self.end_device()
            self.is_in_device = True
            self.devices += 1
        elif not self.is_in_device:
            raise self.refused("no text of clpeak")
        elif text.endswith("Skipped"):
            self.title = ""
        elif text.startswith("Kernel launch latency"):
            self.take_latency(text)
        elif text.endswith(")") and " : " not in text:
            self.begin_block(text)
        else:
            self.take_row(text)

    def refused(self, reason: str) -> Refused:
        return Refused(self.line, reason)

    def put(self, test: str, metric: str, value: float, unit: Unit) -> None:
        _take(self.sheet.gpus[self.devices - 1], Value(_BACKEND, test, metric, value * unit.scale, unit.base))

    def end_device(self) -> None:
        self.end_block()
        if self.is_in_device and not self.has_test:
            raise self.refused("a device without a test: the file is cut")
        self.is_in_device = self.has_test = False

    def begin_block(self, text: str) -> None:
        self.end_block()
        title, _, unit_name = text.rpartition("(")
        title, unit = trimmed(title), find_unit(unit_name[:-1])
        if title not in _BLOCKS:
            raise self.refused("a test that clpeak 1.1 does not have")
        if not unit:
            raise self.refused("a unit that is not known")
        self.title, self.unit, self.rows = title, unit, 0

    def end_block(self) -> None:
        title, self.title = self.title, ""
        if not title:
            return
        self.has_test = True
        expected = _BLOCKS[title][1]
        if self.rows != expected:
            raise self.refused(f"{title} has {self.rows} rows instead of {expected}: the file is cut")

    def take_row(self, text: str) -> None:
        name, colon, value = text.partition(":")
        if not colon:
            raise self.refused("no row of clpeak")
        if not self.title:
            return  # a property of the device
        number = measure(trimmed(value))
        if number is None:
            raise self.refused(f'no number: "{value}"')
        self.rows += 1
        self.put(_BLOCKS[self.title][0], trimmed(name).lower().replace(" ", "_").replace("-", ""), number, self.unit)

    def take_latency(self, text: str) -> None:
        self.end_block()
        words = words_of(text.partition(":")[2])
        number, unit = (measure(words[0]), find_unit(words[1])) if len(words) == 2 else (None, None)
        if number is None or not unit:
            raise self.refused("no latency")
        self.put("kernel_launch_latency", "", number, unit)
        self.has_test = True


def _parse_text(text: str) -> Sheet:
    parser = _Text()
    for parser.line, line in lines_of(text):
        parser.take(trimmed(line))
    parser.end_device()
    return parser.sheet


def _parse_xml(text: str) -> Sheet:
    root = parse_xml(text)
    if root.name != "clpeak":
        raise Refused(root.line, "no XML of clpeak")
    sheet = Sheet()
    devices, runs = 0, Counter()  # type: int, Counter[str]
    for part in root.children:
        if part.name == "run":
            backend = part.attribute("backend")  # each has its own numbers of devices
            _take_run(sheet.gpus[runs[backend]], part)
            runs[backend] += 1
        for device in part.children:
            if device.name == "device":
                for test in device.children:
                    _take_test(sheet.gpus[devices], test)
                devices += 1
    return sheet


def _take_test(gpu: GpuResults, test: Element) -> None:
    """Version 1.1: <test unit="gbps"><float>3.9</float>..</test>, or the number directly."""
    unit = _unit_of(test)
    for metric in test.children or [test]:
        _take(gpu, Value(_BACKEND, test.name, "" if metric is test else metric.name, _number_of(metric) * unit.scale, unit.base))


def _take_run(gpu: GpuResults, run: Element) -> None:
    """Version 2: <run backend= ..><category><test name= unit=><metric name= >1</metric>."""
    for category in run.children:
        for test in category.children:
            unit = _unit_of(test)
            for metric in test.children:
                if not metric.attribute("status"):
                    _take(gpu, Value(run.attribute("backend"), test.attribute("name"), metric.attribute("name"), _number_of(metric) * unit.scale,
                                     unit.base))


def _unit_of(test: Element) -> Unit:
    unit = find_unit(test.attribute("unit"))
    if not unit:
        raise _bad(test)
    return unit


def _number_of(metric: Element) -> float:
    number = measure(trimmed(metric.text))
    if number is None:
        raise _bad(metric)
    return number


def _bad(element: Element) -> Refused:
    return Refused(element.line, f'no unit or no number in "{element.name}"')


def _parse_json(text: str) -> Sheet:
    root = parse_json(text)
    devices = root.find("devices")
    if root.text_of("schema") != "clpeak/run" or devices is None:
        raise Refused(root.line, "no run of clpeak (schema clpeak/run)")
    sheet = Sheet(timestamp=_time_of(root.text_of("generated_at")))
    for device in devices.items:
        _take_device(sheet, device)
    return sheet


def _time_of(text: str) -> Optional[float]:
    """"2026-10-01T15:23:16Z" in Unix time; None for any other form."""
    try:
        return float(calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%SZ")))
    except ValueError:
        return None


def _take_device(sheet: Sheet, device: Json) -> None:
    index, tests = device.find("device_index"), device.find("tests")
    number = index.number if index else None
    if number is None or not 0 <= number < MOST_GPUS or tests is None:
        raise Refused(device.line, "a device without its device_index or tests")
    if device.text_of("type") == "cpu":
        return
    gpu = sheet.gpus[int(number)]
    for test in tests.items:
        metrics = test.find("metrics")
        if metrics is None:
            raise Refused(test.line, "a test without metrics")
        for metric in metrics.items:
            _take_metric(gpu, device, test, metric)


def _take_metric(gpu: GpuResults, device: Json, test: Json, metric: Json) -> None:
    value = metric.find("value")
    if value is None and metric.text_of("status"):
        return  # unsupported
    unit = find_unit(metric.text_of("unit") if metric.find("unit") else test.text_of("unit"))
    if not unit:
        raise Refused(metric.line, "a metric in a unit that is not known")
    number = value.number if value else None
    if number is None or number < 0:
        raise Refused(metric.line, "a metric without a value")
    _take(gpu, Value(device.text_of("backend"), test.text_of("id"), metric.text_of("id"), number * unit.scale, unit.base))
