"""What AI-Benchmark prints."""
from __future__ import annotations

import re

from .results import GpuResults, Sheet, find_unit
from .texts import Refused, lines_of, measure, trimmed, words_of

_SCORES = {"Device Inference Score:": "inference", "Device Training Score:": "training", "Device AI Score:": "ai"}
_LAST = "For more information and results, please visit"
_MODEL = re.compile("[0-9]+/[0-9]+[.] (.*)")  # "1/19. MobileNet-V2"


def parse(text: str, _host: str) -> Sheet:
    sheet, last, model = Sheet(), 1, ""
    is_named = is_whole = False
    for last, line in lines_of(text):
        line = trimmed(line)
        is_named = is_named or "AI-Benchmark-v" in line
        is_whole = is_whole or line.startswith(_LAST)
        title = _MODEL.fullmatch(line)
        model = trimmed(title[1]) or model if title else model
        score = next((start for start in _SCORES if line.startswith(start)), "")
        if score:
            _take_score(sheet.gpus[0], last, _SCORES[score], line[len(score):])
        elif model and (" - inference" in line or " - training" in line):
            _take_test(sheet.gpus[0], last, model, line)
    if not is_named:
        raise Refused(last, "no output of AI-Benchmark")
    if not is_whole:
        raise Refused(last, "the scores or the last line are missing: the file is cut")
    return sheet


def _take_score(gpu: GpuResults, line: int, test: str, text: str) -> None:
    score = measure(trimmed(text))
    if score is None:
        raise Refused(line, f'no score: "{text}"')
    if score > 0:  # a run of one half prints 0 for the other, and the sum
        gpu.result(test, "score", score)


def _take_test(gpu: GpuResults, line: int, model: str, text: str) -> None:
    """"1.1 - inference | batch=50, size=224x224: 466 ± 16 ms"."""
    words = words_of(text)
    is_row = len(words) == 9 and words[4].endswith(":")
    value, unit = (measure(words[5]), find_unit(words[8])) if is_row else (None, None)
    if value is None or not unit:
        raise Refused(line, f"a test of {model} without its time")
    gpu.result(f"{model} {' '.join(words[2:5])[:-1]}", unit.base, value * unit.scale)
