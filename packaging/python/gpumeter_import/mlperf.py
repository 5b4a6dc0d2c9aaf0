"""MLPerf: the log of a training run, or the summary of the load generator of inference."""
from __future__ import annotations

from typing import Dict, List, Tuple

from .documents import Json, parse_json
from .results import SECONDS, Sheet
from .texts import Refused, after, lines_of, measure, trimmed

_MARK = ":::MLLOG"
_MILLISECOND, _NANOSECOND = 1e-3, 1e-9


def parse(text: str, _host: str) -> Sheet:
    lines = lines_of(text)
    if _MARK in text:
        return _training(lines)
    if "MLPerf Results Summary" not in text:
        raise Refused(1, "neither :::MLLOG lines nor mlperf_log_summary.txt")
    return _inference(lines)


def _training(lines: List[Tuple[int, str]]) -> Sheet:
    numbers: Dict[str, float] = {}  # run_start and run_stop are Unix times in milliseconds
    name, status = "training", ""
    for number, line in lines:
        document = after(line, _MARK)
        if document is None:
            continue
        event = parse_json(document, number)
        key, value, metadata = event.text_of("key"), event.find("value"), event.find("metadata")
        time = event.find("time_ms")
        if not key or time is None or time.number is None:
            raise Refused(event.line, "an MLLOG line without key or time_ms")
        if key == "submission_benchmark":
            name = event.text_of("value") or "training"
        elif key in ("run_start", "run_stop"):
            numbers[key] = time.number
            status = metadata.text_of("status") if key == "run_stop" and metadata else status
        elif key in ("eval_accuracy", "tracked_stats") and value:
            _take_figure(numbers, key, value)
    return _sheet_of(numbers, name, status, len(lines))


def _take_figure(numbers: Dict[str, float], key: str, value: Json) -> None:
    figure = value if key == "eval_accuracy" else value.find("throughput")
    if figure and figure.number is not None:
        numbers[key] = figure.number


def _sheet_of(numbers: Dict[str, float], name: str, status: str, last: int) -> Sheet:
    if "run_start" not in numbers or "run_stop" not in numbers:
        raise Refused(last, "the run has no run_start and run_stop: the log is cut")
    if status != "success":
        raise Refused(last, f'the run ended with the status "{status}"')
    took = numbers["run_stop"] - numbers["run_start"]
    if took < 0:
        raise Refused(last, "the run stopped before it started")
    sheet = Sheet(is_of_machine=True, timestamp=numbers["run_stop"] * _MILLISECOND)
    sheet.gpus[0].result(f"{name} time to train", SECONDS, took * _MILLISECOND)
    if "eval_accuracy" in numbers:
        sheet.gpus[0].result(f"{name} eval_accuracy", "value", numbers["eval_accuracy"])
    if "tracked_stats" in numbers:
        sheet.gpus[0].result(f"{name} throughput", "samples_per_second", numbers["tracked_stats"])
    return sheet


def _inference(lines: List[Tuple[int, str]]) -> Sheet:
    sheet = Sheet(is_of_machine=True)
    scenario = validity = ""
    is_whole = has_errors = False
    for number, line in lines:
        name, _, value = map(trimmed, line.partition(":"))
        scenario = value if name == "Scenario" else scenario
        validity = value if name == "Result is" else validity
        is_whole = is_whole or name.startswith("No errors encountered")
        has_errors = has_errors or name.endswith(("ERRORS encountered. See detailed log.", "errors encountered"))
        if value and not name.startswith("target"):
            _take_row(sheet, number, scenario, name, value)
    last = len(lines)
    if has_errors:
        raise Refused(last, "the load generator encountered errors")
    if not is_whole:
        raise Refused(last, "the summary ends before its last sentence: the file is cut")
    if validity != "VALID":
        raise Refused(last, f'MLPerf calls the result "{validity}"')
    return sheet


def _take_row(sheet: Sheet, line: int, scenario: str, name: str, value: str) -> None:
    is_latency = name.endswith("latency (ns)")
    if not is_latency and not name.endswith(("amples per second", "okens per second")):
        return
    number = measure(value)
    if number is None:
        raise Refused(line, f'no number: "{value}"')
    if is_latency:
        sheet.gpus[0].result(f"{scenario} {name[:-len(' (ns)')]}", SECONDS, number * _NANOSECOND)
    else:
        sheet.gpus[0].result(f"{scenario} {name}", "tokens_per_second" if name.endswith("okens per second") else "samples_per_second", number)
