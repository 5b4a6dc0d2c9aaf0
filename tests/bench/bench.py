"""Shared by the benchmark programs: one table format, medians, and a daemon to measure."""
import os
import statistics
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/e2e"))
from harness import BINARY, OPENMETRICS, Daemon, wait_until  # noqa: E402,F401

FULL = os.environ.get("BENCH_FULL") == "1"


def table(title: str, rows: list[tuple[str, str, str]]) -> None:
    """Rows of what, figure, bar. Prints at once, so that a long run shows where it is."""
    rows = [("what", "figure", "bar"), *rows]
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    print(f"\n== {title}")
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip(), flush=True)


def median_text(values: list[float], unit: str, digits: int = 1) -> str:
    return f"{statistics.median(values):.{digits}f} {unit} (of {len(values)}: {min(values):.{digits}f} to {max(values):.{digits}f})"


def resident_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:")) / 1024


def series_count(daemon: Daemon) -> int:
    text = daemon.fetch("/metrics", timeout=60).text
    return sum(1 for line in text.splitlines() if line and not line.startswith("#"))
