"""all_reduce_perf and the other programs of nccl-tests and rccl-tests."""
from __future__ import annotations

from typing import List, NamedTuple, Optional, Tuple

from .results import BYTES_PER_SECOND, SECONDS, GpuResults, Sheet, pci_address
from .texts import MOST_GPUS, Refused, after, lines_of, measure, trimmed, whole, words_of

_GIGABYTE, _MICROSECOND = 1e9, 1e-6


class Rank(NamedTuple):
    host: str
    device: int
    pci: str


class Way(NamedTuple):
    """The three figures of one way of a row, in place or not, and its errors."""
    seconds: float
    algorithm: float  # bytes per second
    bus: float
    errors: Optional[float]  # None: not checked


class _Parser:
    def __init__(self) -> None:
        self.line, self.test = 1, "collective"
        self.ranks: List[Rank] = []
        self.has_root = self.counts_errors = False
        self.smallest: Optional[Tuple[float, Way]] = None  # with its size
        self.largest: Optional[Tuple[float, Way, Way]] = None
        self.average: Optional[float] = None
        self.failed: Optional[bool] = None

    def refused(self, reason: str) -> Refused:
        return Refused(self.line, reason)

    def take(self, text: str) -> None:
        average = after(text, "# Avg bus bandwidth")
        self.test = after(text, "# Collective test starting:") or self.test
        words = words_of(text)
        if average is not None:
            self.take_average(average)
        elif text.startswith("#"):
            self.ranks += _ranks_of(text)
            self.has_root = self.has_root or "algbw" in text and "root" in text
            self.counts_errors = self.counts_errors or "#wrong" in text
        elif words and words[0].isascii() and words[0].isdigit():  # otherwise a line of NCCL's log
            self.take_row(words, float(words[0]))

    def take_row(self, words: List[str], size: float) -> None:
        """size count type redop [root] time algbw busbw #wrong time algbw busbw #wrong"""
        first = 5 if self.has_root else 4
        out, inplace = _way_of(words[first:first + 4]), _way_of(words[first + 4:])
        if not out or not inplace:
            raise self.refused("a row without its twelve or thirteen fields")
        for way in (out, inplace):
            if way.errors is not None and self.counts_errors:
                self.failed = bool(self.failed) or way.errors > 0
        if size > 0 and (not self.smallest or size < self.smallest[0]):
            self.smallest = size, out
        if not self.largest or size >= self.largest[0]:
            self.largest = size, out, inplace

    def take_average(self, text: str) -> None:
        number = measure((words_of(text.partition(":")[2]) or [""])[0])
        if number is None:
            raise self.refused("no average")
        self.average = number * _GIGABYTE

    def sheet(self, host: str) -> Sheet:
        if not self.ranks or not self.largest:
            raise self.refused("no results of nccl-tests")
        if self.average is None:
            raise self.refused("the average at the end is missing: the file is cut")
        hosts = sorted({rank.host for rank in self.ranks})
        if host not in hosts:
            raise self.refused(f"the ranks ran on {' '.join(hosts)}; this machine is {host}. Give the right one with --host")
        sheet = Sheet()
        for rank in self.ranks:
            if rank.host == host:
                self.put(sheet.gpus[rank.device], rank, *self.largest[1:], self.average)
        return sheet

    def put(self, gpu: GpuResults, rank: Rank, out: Way, inplace: Way, average: float) -> None:
        gpu.pci = rank.pci
        for name, value in (("busbw average", average), ("busbw out-of-place", out.bus), ("busbw in-place", inplace.bus),
                            ("algbw out-of-place", out.algorithm), ("algbw in-place", inplace.algorithm)):
            gpu.result(f"{self.test} {name}", BYTES_PER_SECOND, value)
        if self.smallest:
            gpu.result(f"{self.test} time of the smallest", SECONDS, self.smallest[1].seconds)
        if self.failed is not None:
            gpu.verdict(self.failed)


def _ranks_of(line: str) -> List[Rank]:
    """"#  Rank  0 Group  0 Pid 4063850 on   lrdn2296 device  0 [0000:1d:00] NVIDIA A100-SXM-64GB"; older versions have only the bus, "[0x0f]"."""
    words = words_of(after(line, " on ") or "")
    device = whole(words[2]) if "Rank" in line and len(words) > 2 and words[1] == "device" else None
    if device is None or device >= MOST_GPUS:
        return []
    place = words[3] if len(words) > 3 else ""
    return [Rank(words[0], device, pci_address(place[1:-1]) if place.startswith("[") and place.endswith("]") else "")]


def _way_of(words: List[str]) -> Optional[Way]:
    if len(words) != 4:
        return None
    time, algorithm, bus, errors = map(measure, words)
    if time is None or algorithm is None or bus is None or (errors is None and words[3] != "N/A"):
        return None
    return Way(time * _MICROSECOND, algorithm * _GIGABYTE, bus * _GIGABYTE, errors)


def parse(text: str, host: str) -> Sheet:
    parser = _Parser()
    for parser.line, line in lines_of(text):
        parser.take(trimmed(line))
    return parser.sheet(host)
