"""nvbandwidth -j."""
from __future__ import annotations

import re
from typing import Optional

from .documents import Json, parse_json
from .results import BYTES_PER_SECOND, Sheet, Unit, find_unit, pci_address
from .texts import Refused, leading_gpu, measure

# Test cases whose figures have a family. The columns are GPUs; rows are the CPU or the peers.
_DIRECTIONS = {
    **dict.fromkeys(("host_to_device_memcpy_ce", "host_to_device_memcpy_sm"), "host_to_device"),
    **dict.fromkeys(("device_to_host_memcpy_ce", "device_to_host_memcpy_sm"), "device_to_host"),
    **dict.fromkeys(("device_to_device_memcpy_read_ce", "device_to_device_memcpy_read_sm", "device_to_device_memcpy_write_ce",
                     "device_to_device_memcpy_write_sm"), "device_to_device"),
}
_LOCAL_COPY = "device_local_copy"
# A copy reads and writes each byte; nvbandwidth counts it once (its README).
_READ_AND_WRITTEN = 2


def parse(text: str, _host: str) -> Sheet:
    root = parse_json(text)
    run = root.find("nvbandwidth")
    tests, devices = (run.find("testcases"), run.find("GPU Device list")) if run else (None, None)
    if run is None or tests is None or devices is None:
        raise Refused(root.line, "no run of nvbandwidth with a list of GPUs")
    error = run.find("error")
    if error:
        raise Refused(error.line, f"nvbandwidth ended with an error: {error.text}")
    sheet = Sheet()
    for entry in devices.items:
        _take_device(sheet, entry)
    for test in tests.items:
        status = test.text_of("status")
        if status in ("Waived", "Not Found"):
            continue
        matrix = test.find("bandwidth_matrix")
        if status != "Passed" or matrix is None:
            raise Refused(test.line, f"test case {test.text_of('name')} did not pass: {status}")
        _take_matrix(sheet, test, matrix)
    return sheet


def _take_device(sheet: Sheet, entry: Json) -> None:
    """"0: NVIDIA GB200 (00000008:06:00): (host)": the number, and the address if the list has it."""
    number = leading_gpu(entry.text)
    if number is None:
        raise Refused(entry.line, f'no GPU: "{entry.text}"')
    gpu = sheet.gpus[number]
    for inner in re.findall(r"\(([^()]*)", entry.text):
        gpu.pci = pci_address(inner) or gpu.pci


def _take_matrix(sheet: Sheet, test: Json, matrix: Json) -> None:
    name = test.text_of("name")
    unit = _unit_of(test.text_of("bandwidth_description"))
    if not unit:
        raise Refused(test.line, "a test case in a unit that is not known")
    for row in matrix.items:
        for column, cell in enumerate(row.items):
            if cell.text == "N/A":
                continue
            value = measure(cell.text)
            if value is None:
                raise Refused(cell.line, f"no number in the matrix of {name}")
            if column not in sheet.gpus:
                raise Refused(cell.line, "a column without a GPU in the list")
            _take_cell(sheet, column, name, value * unit.scale, unit)


def _take_cell(sheet: Sheet, column: int, name: str, value: float, unit: Unit) -> None:
    gpu = sheet.gpus[column]
    if unit.base == BYTES_PER_SECOND and name in _DIRECTIONS:
        gpu.transfer(_DIRECTIONS[name], value)
    elif unit.base == BYTES_PER_SECOND and name == _LOCAL_COPY:
        gpu.memory_bandwidth("copy", value * _READ_AND_WRITTEN)
    else:
        gpu.best_result(name, unit.base, value)


def _unit_of(description: str) -> Optional[Unit]:
    """The unit in the brackets at the end of "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)"."""
    found = re.search(r"\(([^(]*)\)\Z", description)
    return find_unit(found[1]) if found else None
