#!/usr/bin/env python3
"""The cost of reporting for a job, the daemon's maximum rate of messages, and the cost of a scrape of a page full of job series.

As root it tests each queue length (a network namespace has its own), otherwise only the machine's."""
from __future__ import annotations

import ctypes
import os
import signal
import socket
import statistics
import sys
import threading
import time
from pathlib import Path
from typing import Callable

from bench import Daemon, resident_mib, series_count, table

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests/python"), str(ROOT / "tests/e2e")]
import cost  # noqa: E402
import gpumeter  # noqa: E402
from jobs import Folder, is_root, shown  # noqa: E402

QUEUE_LENGTH = Path("/proc/sys/net/unix/max_dgram_qlen")
CLONE_NEWNET = 0x40000000
MESSAGES = 200_000
RUNS = 235  # of 170 series, as they are charged: the daemon's whole quota of 40 000
RUN = "ml.steps:1|c|#run:r{i}\nml.step.seconds:0.1|d|#run:r{i}"
GENEROUS = "  limits: {lines_per_second: 1000000, series_per_run: 40000, series_per_user: 40000}\n"


def calls(state: str) -> list[tuple[str, str, str]]:
    """Rows of one state of the daemon: up, stopped, or frozen by SIGSTOP with its queue full."""
    with Folder() as folder, folder.daemon() as daemon:
        if state == "stopped":
            daemon.stop()
        if state == "frozen":
            daemon.send(signal.SIGSTOP)
            fill(folder.datagram)
        with gpumeter.Run("cost", path=folder.datagram, environ={}) as run:
            costs = [cost._cost(name, state, call, 2000) for name, call in cost._calls(run).items()]
    return [(f"{c.call}, daemon {state}", f"median {c.median * 1e6:.1f} us, p99 {c.p99 * 1e6:.1f} us", "") for c in costs]


def fill(path: str) -> None:
    """Each from a socket of its own, whose send buffer would else be the first to be full."""
    while True:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.setblocking(False)
            try:
                sender.sendto(b"x", path)
            except BlockingIOError:
                return


def bound_with_queue(path: str, length: int) -> socket.socket:
    """A socket keeps the queue's length of the network namespace and moment that it was made in."""
    here, there = socket.socketpair()
    if os.fork() == 0:
        ctypes.CDLL(None).unshare(CLONE_NEWNET)
        QUEUE_LENGTH.write_text(str(length))
        made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        made.bind(path)
        socket.send_fds(there, [b"x"], [made.fileno()])
        os._exit(0)
    numbers = socket.recv_fds(here, 1, 1)[1]
    os.wait()
    return socket.socket(fileno=numbers[0])


def burst(path: str, message: bytes, count: int, pause: float, waits: bool) -> tuple[int, float]:
    """Datagrams that found no room, and seconds, of a loop that does nothing but send."""
    lost = 0
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
        out.setblocking(waits)
        out.connect(path)
        began = time.perf_counter()
        for _ in range(count):
            try:
                out.send(message)
            except BlockingIOError:
                lost += 1
            if pause:
                time.sleep(pause)
        return lost, time.perf_counter() - began


def tilt(folder: Folder, daemon: Daemon, what: str, lines: int, pause: float, waits: bool) -> tuple[str, str, str]:
    name = what.replace(" ", "_").replace(",", "")
    count = 2000 if pause else MESSAGES // lines
    message = b"\n".join([f"ml.steps:1|c|#run:{name}".encode()] * lines)
    lost, seconds = burst(folder.datagram, message, count, pause, waits)
    shown(daemon, {f'ml_steps_total{{run="{name}"}}': (count - lost) * lines})  # what was queued is counted, all of it
    rate = (count - lost) / seconds
    return what, f"{rate:.0f} datagrams/s, {rate * lines:.0f} lines/s taken; {lost / count:.2%} of {count} lost", ""


def throughput(length: int | None) -> list[tuple[str, str, str]]:
    with Folder(GENEROUS) as folder:
        made = bound_with_queue(folder.datagram, length) if length else None
        queue = f"queue of {length or QUEUE_LENGTH.read_text().strip()}"
        with (folder.passed([made]) if made else folder.daemon()) as daemon:
            return [tilt(folder, daemon, f"{queue}, a sender that waits", 1, 0, True),
                    tilt(folder, daemon, f"{queue}, the same, 50 lines each", 50, 0, True),
                    tilt(folder, daemon, f"{queue}, one that does not wait", 1, 0, False),
                    tilt(folder, daemon, f"{queue}, the same, 1000 a second", 1, 0.001, False)]


def thread_seconds(pid: int) -> dict[str, float]:
    """CPU time by thread name."""
    tick = os.sysconf("SC_CLK_TCK")
    found: dict[str, float] = {}
    for stat in Path(f"/proc/{pid}/task").glob("*/stat"):
        name, _, rest = stat.read_text().partition("(")[2].rpartition(")")
        fields = rest.split()
        found[name] = found.get(name, 0) + (int(fields[11]) + int(fields[12])) / tick
    return found


def scrapes(daemon: Daemon, seconds: float) -> list[float]:
    """How long each took, in ms: with gzip, as Prometheus asks."""
    taken, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.perf_counter()
        daemon.fetch("/metrics", {"Accept-Encoding": "gzip"}, timeout=60)
        taken.append((time.perf_counter() - began) * 1e3)
        time.sleep(0.02)
    return taken


def full_page(seconds: float = 8) -> list[tuple[str, str, str]]:
    """With runs that stay, then with runs that come each second."""
    rows = []
    with Folder(GENEROUS) as folder, folder.daemon() as daemon:
        def look(what: str) -> None:
            before = thread_seconds(daemon.process.pid)
            took = sorted(scrapes(daemon, seconds))
            used = thread_seconds(daemon.process.pid)
            cpu = ", ".join(f"{name} {(used[name] - before.get(name, 0)) / seconds:.1%}" for name in ("jobs", "jobs-page") if name in used)
            rows.append((what, f"scrape median {statistics.median(took):.1f} ms, longest {took[-1]:.1f} ms; CPU of a core: {cpu}; "
                               f"{resident_mib(daemon.process.pid):.0f} MiB", ""))

        look("no job")
        folder.send(*(RUN.format(i=i) for i in range(RUNS)))
        shown(daemon, {f'ml_steps_total{{run="r{RUNS - 1}"}}': 1})
        look(f"{RUNS} runs, {series_count(daemon)} series")
        with Churn(lambda i: folder.send(f"ml.loss:1|g|#run:r{i % RUNS}")):
            look("the same, and further series each second")
    return rows


class Churn:
    """Calls something with 0, 1, 2 .. all the time."""

    def __init__(self, act: Callable[[int], None]) -> None:
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run, args=(act,))

    def run(self, act: Callable[[int], None]) -> None:
        count = 0
        while not self.over.wait(0.05):
            act(count)
            count += 1

    def __enter__(self) -> "Churn":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.thread.join()


if __name__ == "__main__":
    table("a call of the Python client", [row for state in cost.DAEMONS for row in calls(state)])
    lengths: list[int | None] = [10, 512] if is_root() else [None]
    table("datagrams at full tilt", [row for length in lengths for row in throughput(length)])
    table("a page full of jobs", full_page())
