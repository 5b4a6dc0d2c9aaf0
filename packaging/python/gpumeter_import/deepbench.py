"""The tables of DeepBench."""
from __future__ import annotations

import re
from typing import Dict, List, Tuple

from .results import SECONDS, GpuResults, Sheet
from .texts import Refused, lines_of, measure, trimmed, words_of

# The file does not say which library computed.
_BACKEND = "deepbench"
_MICROSECOND = 1e-6
_DTYPES = {"half": "fp16", "float": "fp32", "int8": "int8", "": "fp32"}
# Names of columns, and whether they hold times.
Columns = List[Tuple[str, bool]]


def parse(text: str, _host: str) -> Sheet:
    sheet, rows, last = Sheet(), 0, 1
    columns: Columns = []
    for last, line in lines_of(text):
        row = trimmed(line)
        header = _columns_of(row)
        if header:
            columns, rows = header, 0
        elif columns and re.search(r"[0-9][^ \t]*\Z", row) and not row.startswith("Total kernels"):
            _take_row(sheet.gpus[0], last, columns, words_of(row))
            rows += 1
    if not columns:
        raise Refused(last, "no table of DeepBench")
    if not rows:
        raise Refused(last, "the table has no rows: the file is cut")
    return sheet


def _columns_of(line: str) -> Columns:
    """"m n k a_t b_t precision time (usec)": "(usec)" marks the columns with times. None if there is no such mark."""
    columns: Columns = []
    for word in words_of(line):
        if word == "(usec)" and columns:
            columns[-1] = columns[-1][0], True
        else:
            columns.append((word, False))
    return columns if any(is_time for _, is_time in columns) else []


def _take_row(gpu: GpuResults, line: int, columns: Columns, words: List[str]) -> None:
    # Padded kernels of int8 and the algorithm of convolutions may follow the times.
    if len(words) < len(columns):
        raise Refused(line, f"a row has {len(words)} fields instead of {len(columns)}: the file is cut")
    sizes: Dict[str, str] = {}
    for (name, is_time), word in zip(columns, words):
        if is_time:
            break
        sizes.setdefault(name, word)
    # The sizes in order, so that a label tells the operation: "m=1760 n=16 k=1760 ..".
    test = " ".join(f"{name}={word}" for name, word in sizes.items())
    has_total = ("total_time", True) in columns
    for (name, is_time), word in zip(columns, words):
        if not is_time:
            continue
        if word == "Not":
            return  # "Not Supported"
        time = measure(word)
        if time is None:
            raise Refused(line, f'no time: "{word}"')
        if has_total and name != "total_time":
            continue
        if name == "time":
            _take_product(gpu, sizes, time * _MICROSECOND)
        gpu.result(f"{test} {name}", SECONDS, time * _MICROSECOND)


def _take_product(gpu: GpuResults, sizes: Dict[str, str], seconds: float) -> None:
    """A matrix product of m x k and k x n takes 2 m n k operations."""
    values = [measure(sizes.get(size, "")) for size in "mnk"]
    dtype = _DTYPES.get(sizes.get("precision", ""))
    if None in values or dtype is None or seconds < _MICROSECOND:  # times are whole microseconds; shorter ones are 0
        return
    rate = 2 * values[0] * values[1] * values[2] / seconds  # type: ignore[operator]
    if rate <= 1e18:
        gpu.flops(dtype, _BACKEND, rate)
