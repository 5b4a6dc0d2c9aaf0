"""A table of runs: the page's values compared with a script's known values. Concurrent cases write their rows to a file."""
from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TABLE = "RUN_LIFECYCLE_TABLE"  # the file
COLUMNS = {"run time": 9, "solution": 9, "best": 9, "status": 17, "restarts": 8, "lost steps": 10, "steps": 9, "phases": 8,
           "joules": 11, "GPUs": 15}
# The start is cut to whole seconds, and a process that says nothing is found gone within another: times may be longer than they
# were by both. The rest is for a busy machine.
SHORTER, LONGER = 0.8, 2.5
JOULES = 0.15
UNKNOWN = object()  # is not compared


@dataclass
class Between:
    least: float
    most: float

    def __str__(self) -> str:
        return f"{self.least:.4g}..{self.most:.4g}"


def is_right(column: str, page: Any, known: Any) -> bool:
    if isinstance(known, Between):
        return page is not None and known.least <= page <= known.most
    if isinstance(known, tuple):  # each would be right
        return any(is_right(column, page, one) for one in known)
    if page is None or known is None or isinstance(known, str):
        return page == known
    if column == "joules":
        return abs(page - known) <= JOULES * known
    if column in ("run time", "solution"):
        return -SHORTER <= page - known <= LONGER
    return abs(page - known) <= 1e-9


def text(value: Any) -> str:
    if isinstance(value, tuple):
        return "|".join(text(one) for one in value)
    return "-" if value is None else f"{value:.4g}" if isinstance(value, (int, float)) else str(value)


def write_row(case: str, cells: list[str]) -> None:
    line = f"{case:32}" + "".join(f" {cell:{width}}" for cell, width in zip(cells, COLUMNS.values()))
    with open(os.environ[TABLE], "a") as table:
        table.write(line.rstrip() + "\n")


@contextmanager
def printed() -> Iterator[None]:
    """The rows that are written meanwhile, in the end. Processes that are started meanwhile add theirs."""
    with tempfile.TemporaryDirectory() as folder:
        is_outermost = TABLE not in os.environ
        table = Path(os.environ.setdefault(TABLE, f"{folder}/table"))
        try:
            yield
        finally:
            if is_outermost and table.exists():
                print("page/known; ! is not right, - is not there, * is guessed\n" + f"{'':32}" +
                      "".join(f" {column:{width}}" for column, width in COLUMNS.items()))
                print("".join(sorted(table.read_text().splitlines(keepends=True))), flush=True)
