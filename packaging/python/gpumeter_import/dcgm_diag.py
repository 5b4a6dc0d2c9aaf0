"""dcgmi diag --json of DCGM 2 to 4."""
from __future__ import annotations

from typing import List, Optional

from .documents import Json, parse_json
from .results import Sheet, find_unit
from .texts import MOST_GPUS, Refused, leading_gpu, measure, trimmed, whole, words_of

_ROOTS = ("DCGM Diagnostic", "DCGM GPU Diagnostic")  # of DCGM 4, and before
# Checks of settings, such as the persistence mode: a failure says nothing about what the GPU computes.
_OF_SETTINGS = "Deployment"
# In "GPU 0 Host to GPU bandwidth:\t\t12.13 GB/s": a direction, or the test of a result.
_TRANSFERS = {" Host to GPU bandwidth:": "host_to_device", " GPU to Host bandwidth:": "device_to_host"}
_RESULTS = {" bidirectional bandwidth:": "pcie bidirectional", " GPU to Host latency:": "pcie latency device to host",
            " Host to GPU latency:": "pcie latency host to device", " bidirectional latency:": "pcie latency bidirectional"}


def parse(text: str, _host: str) -> Sheet:
    lines = text.split("\n")  # dcgmi prints a sentence before the document
    first = next((number for number, line in enumerate(lines, 1) if trimmed(line).startswith("{")), len(lines) + 1)
    root = parse_json("\n".join(lines[first - 1:]), first)
    runs = [run for run in map(root.find, _ROOTS) if run]
    categories = runs[-1].find("test_categories") if runs else None
    if categories is None:
        raise Refused(root.line, "no result of dcgmi diag")
    sheet = Sheet()
    for category in categories.items:
        _take_category(sheet, category)
    return sheet


def _take_category(sheet: Sheet, category: Json) -> None:
    tests = category.find("tests")
    if tests is None:
        raise Refused(category.line, "a category without tests")
    for test in tests.items:
        if test.value is None:
            continue
        name, results = test.text_of("name"), test.find("results")
        if not name or results is None:
            raise Refused(test.line, "a test without a name or results")
        is_setting = category.text_of("category") == _OF_SETTINGS or name == "software"
        for result in results.items:
            _take_result(sheet, result, name, is_setting)


def _take_result(sheet: Sheet, result: Json, test: str, is_setting: bool) -> None:
    status = result.text_of("status")
    if not status:
        raise Refused(result.line, f"a result of {test} without a status")
    infos = result.find("info")
    for info in (infos.items or [infos]) if infos else ():
        _take_info(sheet, info.text)
    if status not in ("PASS", "Pass", "pass", "FAIL", "Fail", "fail"):
        return  # skipped
    has_failed = status.lower() == "fail"
    for number in _gpus_of(result):
        sheet.gpus[number].result(test, "pass", 0 if has_failed else 1)
        if not is_setting:
            sheet.gpus[number].verdict(has_failed)


def _gpus_of(result: Json) -> List[int]:
    """DCGM's numbers of the GPUs of a result; none if it is about something else, such as a CPU."""
    group = result.find("entity_group")
    if group and group.text != "GPU":
        return []
    ids = next((ids for ids in map(result.find, ("entity_id", "gpu_id", "gpu_ids")) if ids), None)
    if ids is None:
        return []
    if ids.number is not None:
        return [int(ids.number)] if 0 <= ids.number < MOST_GPUS else []
    numbers = [whole(trimmed(part)) for part in ids.text.split(",")]
    return [number for number in numbers if number is not None] if all(_is_gpu(number) for number in numbers) else []


def _is_gpu(number: Optional[int]) -> bool:
    return number is not None and number < MOST_GPUS


def _take_info(sheet: Sheet, info: str) -> None:
    number = leading_gpu(info[4:]) if info.startswith("GPU ") else None
    if number is None:
        return
    figure, colon, value_text = info[4:].lstrip("0123456789").partition(":")
    words = words_of(value_text)
    unit, value = (find_unit(words[1]), measure(words[0])) if len(words) == 2 else (None, None)
    if not unit or value is None:
        return
    if figure + colon in _TRANSFERS:
        sheet.gpus[number].transfer(_TRANSFERS[figure + colon], value * unit.scale)
    elif figure + colon in _RESULTS:
        sheet.gpus[number].result(_RESULTS[figure + colon], unit.base, value * unit.scale)
