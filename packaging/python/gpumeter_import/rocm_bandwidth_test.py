"""rocm-bandwidth-test: its matrices."""
from __future__ import annotations

from typing import List

from .results import BYTES_PER_SECOND, Sheet, pci_address
from .texts import Refused, after, lines_of, measure, trimmed, whole, words_of

_ONE_WAY = "Unidirectional copy peak bandwidth"
# The program spells the second title with and without its first "i".
_BOTH_WAYS = ("Bidirectional copy peak bandwidth", "Bdirectional copy peak bandwidth")
_GIGABYTE = 1e9  # of the program (rocm_bandwidth_test's base_test.cpp)
_MOST_DEVICES = 512


class _Parser:
    def __init__(self) -> None:
        self.sheet, self.line = Sheet(), 1
        self.is_gpu: List[bool] = []  # by the program's numbers, which CPUs and GPUs share
        # Without options the program copies in both ways, and writes both options into its first lines.
        self.expected, self.found = {"uni", "bi"}, set()  # type: set[str], set[str]
        self.matrix, self.columns, self.rows = "", [], 0  # type: str, List[int], int

    def refused(self, reason: str) -> Refused:
        return Refused(self.line, reason)

    def take(self, text: str) -> None:
        command = after(text, "Launch Command is:")
        words = words_of(text)
        if command is not None:
            self.expected = {way for way, flag in (("uni", "-a"), ("bi", "-A")) if flag in command}
        elif text.startswith("Device:"):
            self.take_device(text[len("Device:"):])
        elif text.startswith((_ONE_WAY, *_BOTH_WAYS)):
            self.end_matrix()
            self.matrix, self.columns, self.rows = "uni" if text.startswith(_ONE_WAY) else "bi", [], 0
        elif self.matrix and words[:1] == ["D/D"]:
            self.take_header(words[1:])
        elif self.matrix and words:
            self.take_row(words)

    def take_device(self, text: str) -> None:
        """"2,  AMD Instinct MI210,  GPU-06c9d21390bc2e70,  05:0.0"; older versions have no GPU-id. A CPU has no address."""
        number, _, rest = text.partition(",")
        if whole(trimmed(number)) != len(self.is_gpu) or len(self.is_gpu) >= _MOST_DEVICES:
            raise self.refused("devices out of order")
        pci = pci_address((words_of(rest) or [""])[-1])
        if pci:
            self.sheet.gpus[len(self.is_gpu)].pci = pci
        self.is_gpu.append(bool(pci))

    def take_header(self, words: List[str]) -> None:
        for word in words:
            number = whole(word)
            if number is None or number >= len(self.is_gpu):
                raise self.refused("a column of an unknown device")
            self.columns.append(number)

    def take_row(self, words: List[str]) -> None:
        if self.columns and self.rows == len(self.columns):
            return self.end_matrix()  # text after the matrix
        row = whole(words[0])
        if row is None or row >= len(self.is_gpu) or len(words) != len(self.columns) + 1:
            raise self.refused(f"a row of the matrix has {len(words)} fields instead of {len(self.columns) + 1}: the file is cut")
        self.rows += 1
        for column, word in zip(self.columns, words[1:]):
            if word == "N/A":
                continue
            value = measure(word)
            if value is None:
                raise self.refused(f'no number: "{word}"')
            self.take_cell(row, column, value * _GIGABYTE)

    def take_cell(self, row: int, column: int, value: float) -> None:
        ends = self.is_gpu[row], self.is_gpu[column]
        gpu = self.sheet.gpus[row if ends[0] else column]
        if self.matrix == "bi":
            gpu.best_result("bidirectional device" if all(ends) else "bidirectional host", BYTES_PER_SECOND, value)
        elif row == column:
            gpu.memory_bandwidth("copy", value)  # the program counts reads and writes of such a copy
        elif any(ends):
            gpu.transfer({(True, True): "device_to_device", (True, False): "device_to_host"}.get(ends, "host_to_device"), value)

    def end_matrix(self) -> None:
        if not self.matrix:
            return
        if not self.columns or self.rows != len(self.columns):
            raise self.refused(f"a matrix has {self.rows} rows instead of {len(self.columns)}: the file is cut")
        self.found.add(self.matrix)
        self.matrix = ""


def parse(text: str, _host: str) -> Sheet:
    parser = _Parser()
    for parser.line, line in lines_of(text):
        parser.take(trimmed(line))
    parser.end_matrix()
    if not parser.is_gpu:
        raise parser.refused("no output of rocm-bandwidth-test")
    for way in ("uni", "bi"):
        if way in parser.expected - parser.found:
            raise parser.refused(f"the {way}directional matrix is missing: the file is cut")
    return parser.sheet
