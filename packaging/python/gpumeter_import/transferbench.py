"""The Transfers of TransferBench, as a table or as CSV."""
from __future__ import annotations

import re
from typing import List, Optional, Tuple

from .results import BYTES_PER_SECOND, Sheet
from .texts import MOST_GPUS, Refused, leading_gpu, lines_of, measure, whole, words_of

_GIGABYTE = 1e9
# A copy within one memory reads and writes each byte; TransferBench counts it once.
_READ_AND_WRITTEN = 2


def parse(text: str, _host: str) -> Sheet:
    sheet, is_named, is_in_test = Sheet(), False, False
    last = 1
    for last, line in lines_of(text):
        words = words_of(line) or [""]
        is_named = is_named or words[0].startswith("TransferBench")
        if words[0] == "Test" and len(words) == 2 and words[1].endswith(":"):
            if is_in_test:
                raise Refused(last, "a test begins before the line Aggregate of the test before it")
            is_in_test = True
        elif words[0].startswith("Aggregate"):
            if not is_in_test:
                raise Refused(last, "a line Aggregate outside a test")
            is_in_test = False
        elif words[0] == "Transfer" and is_in_test:
            _take_row(sheet, last, words)
        elif words[0].startswith("Executor") and is_in_test:
            is_named = True
    if is_in_test:
        raise Refused(last, "a test ends before its line Aggregate: the file is cut")
    if not is_named:
        raise Refused(last, "no output of TransferBench")
    return sheet


def _take_row(sheet: Sheet, number: int, words: List[str]) -> None:
    """"Transfer 00 | 56.309 GB/s | 4.767 ms | 268435456 bytes | G0 -> G000:004 -> G1"."""
    rate = words.index("GB/s") if "GB/s" in words else 0
    arrow = words.index("->") if "->" in words else 0
    is_whole = rate >= 2 and arrow > rate and len(words) - arrow >= 4 and words[arrow + 2] == "->"
    value = measure(words[rate - 1]) if is_whole else None
    if value is None:
        raise Refused(number, "a Transfer without its rate or its path")
    _take_transfer(sheet, words[arrow - 1], words[arrow + 1], words[arrow + 3], value * _GIGABYTE)


def _take_transfer(sheet: Sheet, source: str, executor: str, target: str, value: float) -> None:
    (from_kind, from_number), (to_kind, to_number) = _memory_of(source), _memory_of(target)
    kinds = from_kind, to_kind
    if kinds == ("host", "gpu"):
        sheet.gpus[to_number].transfer("host_to_device", value)
    elif kinds == ("gpu", "host"):
        sheet.gpus[from_number].transfer("device_to_host", value)
    elif kinds == ("none", "gpu"):
        sheet.gpus[to_number].memory_bandwidth("write", value)
    elif kinds == ("gpu", "none"):
        sheet.gpus[from_number].memory_bandwidth("read", value)
    elif kinds == ("gpu", "gpu") and from_number != to_number:
        sheet.gpus[from_number].transfer("device_to_device", value)
    elif kinds == ("gpu", "gpu"):
        sheet.gpus[from_number].memory_bandwidth("copy", _READ_AND_WRITTEN * value)
    else:
        gpu = _gpu_of(executor)
        if gpu is not None:
            sheet.gpus[gpu].best_result(f"{source} -> {executor} -> {target}", BYTES_PER_SECOND, value)


def _memory_of(text: str) -> Tuple[str, int]:
    """A memory of a Transfer: "G0", "C1", "N". TransferBench names the kinds by letters: G, F, U and so on are of the GPU, C, P, B, H of the
    host (its "Transfer definition syntax")."""
    if text == "N":
        return "none", 0
    number = whole(text[1:])
    if number is None or number >= MOST_GPUS:  # several memories, as in a broadcast to "G0G1"
        return "other", 0
    return "gpu" if text[0] in "GF" else "host" if text[0] in "CPBHU" else "other", number


def _gpu_of(executor: str) -> Optional[int]:
    """The GPU that a Transfer between several memories ran on: "G000:004", "GPU00:004", "D0:1", "DMA00.*:001"."""
    return leading_gpu(re.sub("^[^0-9]*", "", executor)) if executor.startswith(("G", "D")) else None
