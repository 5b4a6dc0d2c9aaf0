#!/usr/bin/env python3
"""A scrape beside readers of every slow page: 1000 simulated GPUs and the whole quota of job series. The same scrape alone is measured
before and after them, because other work of the machine moves both.

usage: slow_pages_bench.py BUILD_FOLDER
"""
from __future__ import annotations

import http.client
import multiprocessing
import statistics
import sys
import threading
import time
from collections import Counter
from pathlib import Path

from bench import FULL, Daemon, Row, series_count, table, verdict, wait_until

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests/e2e")]
from jobs import Folder  # noqa: E402
from jobs_cost import GENEROUS, RUN, RUNS  # noqa: E402

GPUS = 1000
READERS = 4  # of each page
SECONDS = 60 if FULL else 15
EVERY = 0.25  # s, between two scrapes
LIMIT = 50.0  # ms
SLOW = ("/api/v1/series", "/api/v1/devices", "/api/v1/health", "/api/v1/workloads", "/api/v1/live?sparklines=1", "/",
        "/metrics?names=dcgm", "/metrics?detail=full", "/metrics?collect[]=simulated")
GZIP = {"Accept-Encoding": "gzip"}


PAUSE = 0.05  # s, of a reader between two answers


class Reader(threading.Thread):
    """Asks for a page again and again; after a 503 it waits as long as it was told to."""

    def __init__(self, port: int, path: str, statuses: Counter, over: "multiprocessing.synchronize.Event"):
        super().__init__(daemon=True)
        self.port, self.path, self.statuses, self.over = port, path, statuses, over

    def run(self) -> None:
        while not self.over.is_set():
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
            try:
                connection.request("GET", self.path, headers=GZIP)
                answer = connection.getresponse()
                while answer.read(1 << 20):
                    pass
                self.statuses[answer.status] += 1
                self.over.wait(float(answer.getheader("Retry-After") or PAUSE))
            except (OSError, http.client.HTTPException) as error:
                self.statuses[type(error).__name__] += 1
            connection.close()


def read(port: int, over: "multiprocessing.synchronize.Event", result: "multiprocessing.SimpleQueue") -> None:
    """All readers, in a process of their own: the scrape must not wait for their interpreter."""
    statuses: Counter = Counter()
    readers = [Reader(port, path, statuses, over) for path in SLOW for _ in range(READERS)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    result.put(dict(statuses))


def scrapes(port: int) -> list[float]:
    """In ms, each on a connection of its own: both HTTP threads have their share."""
    taken, end = [], time.monotonic() + SECONDS
    while time.monotonic() < end:
        time.sleep(EVERY)
        began = time.perf_counter()
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", "/metrics", headers=GZIP)
        answer = connection.getresponse()
        answer.read()
        taken.append((time.perf_counter() - began) * 1e3)
        connection.close()
        assert answer.status == 200, answer.status
    return taken


def row(what: str, taken: list[float], note: str = "") -> Row:
    return Row(what, f"median {statistics.median(taken):.1f} ms, longest {max(taken):.1f} ms of {len(taken)}{note}",
               f"longest <= {LIMIT:g} ms", verdict(max(taken) <= LIMIT))


def measured(detail: str) -> list[Row]:
    with Folder(GENEROUS) as folder, Daemon(f"--simulate={GPUS}", f"--config.file={folder.config}", wait=False, detail=detail) as daemon:
        daemon.wait_ready(300)
        folder.send(*(RUN.format(i=i) for i in range(RUNS)))
        last = f'/api/v1/series?match=ml_steps_total{{run="r{RUNS - 1}"}}'
        wait_until(lambda: '"value":1,' in daemon.fetch(last, timeout=60).text, "the last run is shown", 120)
        name = f"{GPUS} GPUs, {series_count(daemon)} series ({detail} page with gzip)"
        before = scrapes(daemon.port)
        over, result = multiprocessing.Event(), multiprocessing.SimpleQueue()
        readers = multiprocessing.Process(target=read, args=(daemon.port, over, result))
        readers.start()
        beside = scrapes(daemon.port)
        over.set()
        statuses = result.get()
        readers.join()
        after = scrapes(daemon.port)
    answers = ", ".join(f"{count} x {status}" for status, count in sorted(statuses.items(), key=str))
    return [row(f"scrape, {name}: alone", before), row(f"the same beside {READERS} readers of each slow page", beside, f"; theirs: {answers}"),
            row("the same alone again", after)]


if __name__ == "__main__":
    table("a scrape beside slow pages", [each for detail in ("standard", "full") for each in measured(detail)])
