#!/usr/bin/env python3
"""System calls of one sampling cycle per AMD card, by strace of the running daemon on synthetic cards in a tree.

usage: syscalls.py        (GPUMETER_BINARY, and strace; the cards are those of tests/fixtures/amd)

Counted over whole seconds on the threads that read cards; a scrape, the watchdog and the main thread are not theirs.
"""
import collections
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench import ROOT, Daemon, table

sys.path.insert(0, str(ROOT / "tests/fixtures"))
from card_tree import CARDS, lay  # noqa: E402

SECONDS = 20  # two passes of the normal tier
CALL = re.compile(r"^(?:\d+ +)?(\w+)\(")
OF_THE_SCHEDULE = ("futex", "clock_nanosleep", "restart_syscall")


def lanes(pid: int) -> list[str]:
    return [task.name for task in Path(f"/proc/{pid}/task").iterdir()
            if (task / "comm").read_text().startswith("lane-")]


def calls_of(thread: str) -> collections.Counter:
    """The system calls of one thread in SECONDS."""
    with tempfile.NamedTemporaryFile("r") as log:
        with subprocess.Popen(["strace", "-q", "-o", log.name, "-p", thread], stderr=subprocess.DEVNULL) as tracer:
            time.sleep(SECONDS)
            tracer.terminate()
        found = (CALL.match(line) for line in log)
        return collections.Counter(match.group(1) for match in found if match)


def row(card: Path) -> tuple[str, str, str]:
    with tempfile.TemporaryDirectory(prefix="gpumeter-bench-") as folder:
        lay(Path(folder, "sys"), card)
        with Daemon(f"--path.sysfs={folder}/sys", "--no-collector.simulated") as daemon:
            calls = calls_of(lanes(daemon.process.pid)[0])
    reads = sum(n for name, n in calls.items() if name not in OF_THE_SCHEDULE)
    waits = sum(calls.values()) - reads
    by_name = ", ".join(f"{name} {n / SECONDS:.1f}" for name, n in calls.most_common())
    return card.stem, f"{reads / SECONDS:.1f} to read, {waits / SECONDS:.1f} to wait a second ({by_name})", ""


def main() -> int:
    if not shutil.which("strace"):
        print("syscalls: strace is not installed", file=sys.stderr)
        return 1
    table(f"system calls of one card's lane, per second over {SECONDS} s (fast 1 s, normal 10 s)",
          [row(card) for card in sorted(CARDS.glob("*.card"))])
    return 0


if __name__ == "__main__":
    sys.exit(main())
