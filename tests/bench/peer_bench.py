#!/usr/bin/env python3
"""Debian's prometheus-node-exporter beside gpumeter with about as large a page: resident memory, the time of a scrape, and CPU. Both
are scraped once a second, so each scrape gets new values. node_exporter reads them at the scrape, gpumeter before it; the CPU of
gpumeter includes its sampling.

usage: peer_bench.py BUILD_FOLDER        (needs prometheus-node-exporter, and is skipped without it)
"""
import http.client
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

from bench import FULL, Daemon, Row, free_port, resident_mib, series_of, table, verdict, wait_until

SCRAPES = 60 if FULL else 15
EVERY = 1.0  # seconds
WARM_SCRAPES = 3


class Peer:
    """A node_exporter on a free port."""

    def __init__(self) -> None:
        self.port = free_port()
        self.process = subprocess.Popen(["prometheus-node-exporter", f"--web.listen-address=127.0.0.1:{self.port}"],
                                        stderr=subprocess.DEVNULL)
        wait_until(self.answers, "node_exporter serves", 30)

    def answers(self) -> bool:
        try:
            return len(page(self.port)) > 0
        except OSError:
            return False

    def __enter__(self) -> "Peer":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait()


def page(port: int) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", "/metrics")
    return connection.getresponse().read().decode()


def cpu_ms(pid: int) -> float:
    """User and system time of all threads, by the scheduler's count in ns (proc(5), schedstat)."""
    return sum(int((task / "schedstat").read_text().split()[0]) for task in Path(f"/proc/{pid}/task").iterdir()) / 1e6


def scrapes(port: int, pid: int, times: int) -> tuple[float, float]:
    """The median scrape over one connection with gzip, as Prometheus asks, in ms; CPU as a share of one core, in percent."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    taken, before, started = [], cpu_ms(pid), time.perf_counter()
    for _ in range(times):
        time.sleep(EVERY)
        began = time.perf_counter()
        connection.request("GET", "/metrics", headers={"Accept-Encoding": "gzip"})
        connection.getresponse().read()
        taken.append((time.perf_counter() - began) * 1e3)
    connection.close()
    share = (cpu_ms(pid) - before) / (time.perf_counter() - started) / 10
    return statistics.median(taken), share


def measured(port: int, pid: int) -> tuple[float, float, float]:
    scrapes(port, pid, WARM_SCRAPES)
    latency, cpu = scrapes(port, pid, SCRAPES)
    return latency, cpu, resident_mib(pid)


def compared(what: str, ours: float, its: float, unit: str, digits: int) -> Row:
    return Row(what, f"{ours:.{digits}f} {unit}", f"node_exporter {its:.{digits}f} {unit}", verdict(ours <= its))


def main() -> None:
    if shutil.which("prometheus-node-exporter") is None:
        print("peer_bench: prometheus-node-exporter is not installed: skipped", file=sys.stderr)
        return
    with Peer() as peer:
        its_page = page(peer.port)
        its = measured(peer.port, peer.process.pid)
    with Daemon("--simulate=1") as one:
        devices = max(1, round(len(its_page) / len(page(one.port))))
    with Daemon(f"--simulate={devices}") as daemon:
        time.sleep(15)  # past the first pass of the normal tier
        our_page = page(daemon.port)
        ours = measured(daemon.port, daemon.process.pid)
    table("a page of about the same size by Debian's node_exporter", [
        Row("the page beside node_exporter's", f"{len(our_page) / 1000:.0f} kB, {series_of(our_page)} series",
            f"node_exporter {len(its_page) / 1000:.0f} kB, {series_of(its_page)} series"),
        compared("scrape of new values with gzip, keep-alive: median", ours[0], its[0], "ms", 2),
        compared("CPU of a core with a scrape a second", ours[1], its[1], "%", 2),
        compared("resident with that page", ours[2], its[2], "MiB", 1),
    ])


if __name__ == "__main__":
    main()
