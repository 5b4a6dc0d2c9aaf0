#!/usr/bin/env python3
"""Compares 50 readers of the stream, half of them stalled, with 50 pages that poll and with no client: the bytes that each gets, the daemon's
processor time and memory, and the time of a scrape meanwhile. The daemon has 8 simulated GPUs.

usage: stream_bench.py BUILD_FOLDER
"""
from __future__ import annotations

import http.client
import os
import socket
import statistics
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from bench import FULL, Daemon, Row, resident_mib, table

CLIENTS = 50
SECONDS = 40 if FULL else 15
EVERY = 0.25  # s, between two scrapes


@dataclass
class Clients:
    """One thread for each; `over` ends them."""
    port: int
    path: str = ""
    stalled: int = 0
    over: threading.Event = field(default_factory=threading.Event)
    received: list[int] = field(default_factory=list)  # bytes of each that reads
    threads: list[threading.Thread] = field(default_factory=list)

    def __enter__(self) -> "Clients":
        for number in range(CLIENTS if self.path else 0):
            work = self.poll if "stream" not in self.path else self.stall if number < self.stalled else self.read
            self.threads.append(threading.Thread(target=work, daemon=True))
            self.threads[-1].start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        for thread in self.threads:
            thread.join()

    def connected(self) -> socket.socket:
        client = socket.create_connection(("127.0.0.1", self.port), timeout=5)
        client.sendall(f"GET {self.path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        return client

    def read(self) -> None:
        received = 0
        with self.connected() as client:
            while not self.over.is_set():
                received += len(client.recv(65536))
        self.received.append(received)

    def stall(self) -> None:
        with self.connected():
            self.over.wait()

    def poll(self) -> None:
        connection, received = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5), 0
        while not self.over.wait(1):
            connection.request("GET", self.path)
            received += len(connection.getresponse().read())
        connection.close()
        self.received.append(received)


def processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measured(daemon: Daemon, what: str, path: str = "", stalled: int = 0) -> list[Row]:
    with Clients(daemon.port, path, stalled) as clients:
        time.sleep(3)  # until all are connected
        began, used = time.monotonic(), processor_seconds(daemon.process.pid)
        scrapes = []
        while time.monotonic() < began + SECONDS:
            time.sleep(EVERY)
            asked = time.perf_counter()
            daemon.fetch("/metrics")
            scrapes.append((time.perf_counter() - asked) * 1e3)
        seconds = time.monotonic() - began
        share, resident = (processor_seconds(daemon.process.pid) - used) / seconds, resident_mib(daemon.process.pid)
    rows = [Row(f"{what}: processor of a core, resident", f"{share:.1%}, {resident:.1f} MiB"),
            Row(f"{what}: a scrape", f"median {statistics.median(scrapes):.1f} ms, longest {max(scrapes):.1f} ms of {len(scrapes)}")]
    if clients.received:
        rows.append(Row(f"{what}: bytes a second to each that reads", f"{statistics.median(clients.received) / (seconds + 3):.0f}"))
    return rows


if __name__ == "__main__":
    with Daemon("--simulate=8") as daemon:
        table("readers of the stream", [*measured(daemon, "no client"), *measured(daemon, f"{CLIENTS} pages that poll", "/api/v1/live"),
                                        *measured(daemon, f"{CLIENTS} streams, half stalled", "/api/v1/stream", CLIENTS // 2), *measured(daemon, "no client again")])
