#!/usr/bin/env python3
"""gpumeter-benchmark on the processor by PoCL beside Debian's clpeak on the same device, in turns, and how long it takes to give way to
whoever opens its lock.

usage: benchmark_bench.py BUILD_FOLDER        (needs pocl-opencl-icd, and is skipped without it; clpeak for the comparison)
"""
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench import FULL, Row, at_most, table, wait_until

TURNS = 3 if FULL else 1
WAYS = 10 if FULL else 3
PROMISED_SECONDS = 1.0  # docs/operations.md
# clpeak's headings, and what they are compared with: quantity and kind, or the best of the quantity.
PEERS = [("matrix product in fp32", "flops", "fp32", "Single-precision compute (GFLOPS)"),
         ("memory bandwidth, best operation", "memory_bandwidth", "", "Global memory bandwidth (GBPS)")]


class Program:
    """gpumeter-benchmark, with its files in a folder."""

    def __init__(self, path: Path, folder: str):
        self.lock = Path(folder, "lock")
        self.command = [str(path), "--cpu", "--no-send", "--json", "--lock", str(self.lock), "--history", folder]
        self.environment = {**os.environ, "POCL_CACHE_DIR": f"{folder}/pocl"}

    def start(self) -> subprocess.Popen:
        return subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=self.environment)

    def rates(self) -> dict[tuple[str, str], float]:
        said = self.start().communicate(timeout=100)[0]
        return {(each["quantity"], each["kind"]): each["value"] for each in json.loads(said)["benchmarks"][0]["results"]}

    def seconds_to_give_way(self) -> float:
        """From the opening of the lock until the process that computed is gone and the lock is free."""
        running = self.start()
        wait_until(lambda: computes(running.pid), "the process that computes")
        began = time.perf_counter()
        subprocess.run(["flock", str(self.lock), "true"], check=True)
        running.communicate()
        return time.perf_counter() - began


def computes(pid: int) -> bool:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return any("libpocl" in Path(f"/proc/{child}/maps").read_text() for child in children)


def clpeak() -> dict[str, float]:
    """The best rate of each test in base units; empty without clpeak."""
    if not shutil.which("clpeak"):
        return {}
    said = subprocess.run(["clpeak", "--use-event-timer", "--global-bandwidth", "--compute-sp"], capture_output=True, text=True, timeout=100).stdout
    best: dict[str, float] = {}
    test = ""
    for line in said.splitlines():
        test = line.strip() if "(G" in line else test
        if found := re.match(r"\s+(?:float|double|int)\d*\s+: ([\d.]+)", line):
            best[test] = max(best.get(test, 0), float(found[1]) * 1e9)
    return best


def best(rates: dict[tuple[str, str], float], quantity: str, kind: str) -> float:
    return max((value for key, value in rates.items() if key[0] == quantity and kind in ("", key[1])), default=0)


def compared(what: str, ours: list[float], its: list[float]) -> Row:
    mine = statistics.median(ours)
    if not all(its):
        return Row(what, f"{mine / 1e9:.1f} G/s")
    ratio = statistics.median(a / b for a, b in zip(ours, its))
    return Row(what, f"{mine / 1e9:.1f} G/s, {ratio:.2f} x", f"clpeak {statistics.median(its) / 1e9:.1f} G/s")


def main() -> None:
    if not any(Path("/etc/OpenCL/vendors").glob("pocl*")):
        print("benchmark_bench: PoCL is not installed: skipped", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory() as folder:
        program = Program(Path(sys.argv[1], "gpumeter-benchmark").resolve(), folder)
        turns = [(program.rates(), clpeak()) for _ in range(TURNS)]
        ways = [program.seconds_to_give_way() for _ in range(WAYS)]
    rows = [compared(f"gpumeter-benchmark on PoCL: {what}", [best(ours, quantity, kind) for ours, _ in turns], [its.get(title, 0) for _, its in turns])
            for what, quantity, kind, title in PEERS]
    table("gpumeter-benchmark beside clpeak, on the processor", [
        *rows, at_most("gpumeter-benchmark gives way to whoever opens its lock: longest", max(ways), PROMISED_SECONDS, "s", 2, f" of {WAYS}")])


if __name__ == "__main__":
    main()
