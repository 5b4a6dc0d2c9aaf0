#!/usr/bin/env python3
"""Resident memory with 8 simulated GPUs, now and with an hour of history, with about 35 000 series, and over many scrapes and
cycles, where it must stay flat.

usage: rss_bench.py BUILD_FOLDER        (built with GPUMETER_BENCH=ON)
BENCH_FULL=1: 10^5 scrapes and 10^4 cycles, else a tenth of each.
"""
import http.client
import math
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench import FULL, OPENMETRICS, Daemon, Row, at_most, resident_mib, series_count, table, verdict, wait_until

SCRAPES = 100_000 if FULL else 10_000
CYCLES = 10_000 if FULL else 1_000
CYCLE_SECONDS = 0.01  # cycles of every tier at this pace
MANY_SERIES = 35_000
FLAT_MIB = 1  # what an allocator may keep in reserve
SETTLE_SECONDS = 15  # past the first pass of the normal tier


def scrape(port: int, times: int) -> None:
    """One keep-alive connection, alternately plain and gzip, as two Prometheus servers would."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    for i in range(times):
        connection.request("GET", "/metrics", headers={"Accept": OPENMETRICS,
                                                       "Accept-Encoding": "gzip" if i % 2 else "identity"})
        connection.getresponse().read()
    connection.close()


def steady(devices: int) -> tuple[float, int]:
    """Resident MiB after all tiers ran and every format was asked for; series on the page."""
    with Daemon(f"--simulate={devices}") as daemon:
        scrape(daemon.port, 10)
        time.sleep(SETTLE_SECONDS)
        scrape(daemon.port, 10)
        return resident_mib(daemon.process.pid), series_count(daemon)


def over_scrapes() -> tuple[float, float]:
    with Daemon("--simulate=8") as daemon:
        time.sleep(SETTLE_SECONDS)
        scrape(daemon.port, 500)
        before = resident_mib(daemon.process.pid)
        scrape(daemon.port, SCRAPES)
        return before, resident_mib(daemon.process.pid)


def over_cycles() -> tuple[float, float, float]:
    """Resident MiB before and after, and the cycles that ran: observed seconds over the interval."""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "fast.yaml")
        pace = f"{round(CYCLE_SECONDS * 1000)}ms"
        config.write_text(f"sampling: {{floor: {pace}, fast: {pace}, normal: {pace}, slow: {pace}}}\n")
        with Daemon("--simulate=8", f"--config.file={config}") as daemon:
            observed = lambda: daemon.page().one("gpu_observed_seconds_total", gpu="0", tier="fast") or 0
            wait_until(lambda: observed() > 2, "the pace is kept", 60, every=1)
            before, start = resident_mib(daemon.process.pid), observed()
            wait_until(lambda: observed() - start > CYCLES * CYCLE_SECONDS, "the cycles ran", 20 * CYCLES * CYCLE_SECONDS + 60, every=1)
            return before, resident_mib(daemon.process.pid), (observed() - start) / CYCLE_SECONDS


def copying_percent() -> float:
    """CPU time of the thread that copies the figures of 8 GPUs to the runtime folder each second, in percent of a core."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder, Daemon("--simulate=8", env={"RUNTIME_DIRECTORY": folder}) as daemon:
        time.sleep(SETTLE_SECONDS)
        tasks = Path(f"/proc/{daemon.process.pid}/task")
        thread = next(task for task in tasks.iterdir() if Path(task, "comm").read_text() == "state\n")
        spent = lambda: int(Path(thread, "schedstat").read_text().split()[0]) * 1e-9
        before, begun = spent(), time.monotonic()
        time.sleep(20)
        return 100 * (spent() - before) / (time.monotonic() - begun)


def history_mib() -> list[float]:
    """The heap of 8 GPUs' history after half a minute, an hour and six hours of a fake clock."""
    output = subprocess.run([f"{sys.argv[1]}/tests/bench/bench_history"], capture_output=True, text=True, check=True).stdout
    return [int(line.split()[1]) / 2**20 for line in output.splitlines()]


def flat(what: str, before: float, after: float) -> Row:
    return Row(what, f"{before:.1f}, {after:.1f} MiB", f"flat, +-{FLAT_MIB} MiB", verdict(after - before <= FLAT_MIB))


def main() -> None:
    eight, few = steady(8)
    many_devices = math.ceil(MANY_SERIES / (few / 8))
    large, many = steady(many_devices)
    at_first, hour, full = history_mib()
    before, after = over_scrapes()
    first, last, cycles = over_cycles()
    table("resident memory", [
        at_most(f"resident: 8 simulated GPUs, {few} series", eight, 12, "MiB"),
        at_most("resident: the same with an hour of history (heap of the history by a fake clock)", eight + hour - at_first, 12, "MiB"),
        at_most("the history of a GPU, after 6 hours", full * 1024 / 8, 256, "KiB", 0),
        at_most(f"resident: {many_devices} simulated GPUs, {many} series", large, 64, "MiB"),
        flat(f"resident: 8 GPUs before and after {SCRAPES} scrapes", before, after),
        flat(f"resident: 8 GPUs before and after {cycles:.0f} cycles of all tiers", first, last),
    ])
    table("figures that survive a crash", [
        at_most("copy of the figures of 8 GPUs, each second", copying_percent(), 0.2, "% of a core", 3)])


if __name__ == "__main__":
    main()
