"""Compares one reading of nvidia-smi with the pages before and after it."""
from __future__ import annotations

import re
from typing import NamedTuple

from .page import Page
from .rows import Row
from .smi import Told

WORDS = {"Yes": 1.0, "No": 0.0, "Enabled": 1.0, "Disabled": 0.0, "Active": 1.0, "Not Active": 0.0}


class Result(NamedTuple):
    field: str
    series: str
    theirs: str
    ours: str
    verdict: str  # same, differs, absent (nvidia-smi has it, the page does not), not told (nvidia-smi does not have it)


def number(text: str) -> float | None:
    """32, 77.71, P0, Yes."""
    if text in WORDS:
        return WORDS[text]
    match = re.fullmatch(r"P?(-?\d+(?:\.\d+)?)", text)
    return float(match[1]) if match else None


def word(text: str) -> str:
    """"Exclusive Process" is exclusive_process, "Exclusive_Process" too."""
    return re.sub(r"\W+", "_", text.strip()).lower()


def series(row: Row) -> str:
    inside = ",".join(f'{name}="{value}"' for name, value in row.labels.items())
    return row.family + (f"{{{inside}}}" if inside else "")


def pci_address(text: str) -> str:
    """00000000:83:00.0 is 0000:83:00.0 to the kernel."""
    return re.sub(r"^0000(?=[0-9a-f]{4}:)", "", text.lower())


def same_text(row: Row, text: str, page: Page, uuid: str) -> tuple[str | None, bool]:
    if row.label:
        ours = page.label(row.family, uuid, row.label)
        return ours, ours == (pci_address(text) if row.label == "pci_address" else text)
    holding = [sample.labels.get(row.state, "") for sample in page.of(row.family, uuid, **row.labels) if sample.value == 1]
    return (holding[0] if holding else None), word(text) in holding


def same_number(row: Row, value: float, pages: list[Page], uuid: str) -> tuple[str | None, bool]:
    """Between the two pages' values, or off by the tolerance at the most."""
    ours = [total for page in pages if (total := page.total(row.family, uuid, **row.labels)) is not None]
    if not ours:
        return None, False
    slack = row.absolute + row.relative * abs(value * row.unit) + 1e-9 * abs(value * row.unit)
    inside = min(ours) - slack <= value * row.unit <= max(ours) + slack
    return " .. ".join(f"{one / row.unit:g}" for one in sorted(set(ours))), inside


def compare(row: Row, told: Told, pages: list[Page], uuid: str) -> Result:
    text = told.get(row.field)
    if text is None:
        return Result(row.field, series(row), "", "", "not told")
    if row.label or row.state:
        ours, same = same_text(row, text, pages[-1], uuid)
    else:
        value = number(text)
        if value is None:
            return Result(row.field, series(row), text, "", "not told")
        ours, same = same_number(row, value, pages, uuid)
    verdict = "absent" if ours is None else "same" if same else "differs"
    return Result(row.field, series(row), text, ours or "", verdict)


def over_rounds(row: Row, rounds: list[Result]) -> tuple[Result, int]:
    """The last round that shows the verdict over all, and how many agreed."""
    told = [result for result in rounds if result.verdict != "not told"]
    if not told:
        return rounds[-1], 0
    agreed = [result for result in told if result.verdict == "same"]
    enough = len(agreed) * 2 >= len(told) if row.moving else len(agreed) == len(told)
    shown = agreed if enough else [result for result in told if result.verdict != "same"]
    return shown[-1], len(agreed)
