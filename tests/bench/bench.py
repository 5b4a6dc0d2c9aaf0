"""Shared by the benchmark programs: rows with verdicts, one table format, medians, and a daemon to measure."""
import json
import os
import statistics
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/e2e"))
from harness import BINARY, OPENMETRICS, Daemon, free_port, wait_until  # noqa: E402,F401

FULL = os.environ.get("BENCH_FULL") == "1"


@dataclass
class Row:
    """A figure beside its bar, or beside a peer's figure. The verdict is empty if there is no bar."""
    what: str
    figure: str
    bar: str = ""
    verdict: str = ""


def verdict(is_met: bool) -> str:
    return "met" if is_met else "MISSED"


def at_most(what: str, value: float, limit: float, unit: str, digits: int = 1, note: str = "") -> Row:
    return Row(what, f"{value:.{digits}f} {unit}{note}", f"<= {limit:g} {unit}", verdict(value <= limit))


def at_least(what: str, value: float, limit: float, unit: str, digits: int = 2, note: str = "") -> Row:
    return Row(what, f"{value:.{digits}f} {unit}{note}", f">= {limit:g} {unit}", verdict(value >= limit))


def print_table(title: str, rows: list[Row]) -> None:
    cells = [("what", "figure", "bar or peer", "verdict")] + [(row.what, row.figure, row.bar, row.verdict) for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(4)]
    print(f"\n== {title}")
    for row in cells:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip(), flush=True)


def table(title: str, given: list[Row | tuple[str, str, str]]) -> None:
    """Prints the rows at once, so that a long run shows where it is, and keeps them for the table of tests/bench/all."""
    rows = [row if isinstance(row, Row) else Row(*row) for row in given]
    print_table(title, rows)
    kept = os.environ.get("BENCH_ROWS")
    if kept:
        with open(kept, "a") as file:
            for row in rows:
                file.write(json.dumps(asdict(row)) + "\n")


def median_note(values: list[float]) -> str:
    return f" (of {len(values)}: {min(values):.1f} to {max(values):.1f})"


def at_most_median(what: str, values: list[float], limit: float, unit: str) -> Row:
    return at_most(what, statistics.median(values), limit, unit, note=median_note(values))


def resident_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:")) / 1024


def series_of(text: str) -> int:
    return sum(1 for line in text.splitlines() if line and not line.startswith("#"))


def series_count(daemon: Daemon) -> int:
    return series_of(daemon.fetch("/metrics", timeout=60).text)
