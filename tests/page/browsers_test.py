#!/usr/bin/env python3
"""Fifty browsers poll the page of 8 GPUs while Prometheus scrapes; then 50 readers of /api/v1/stream take their place, and every
second one stalls. Prints the scrapes' times before, meanwhile and after, the bytes that a browser or reader receives a second, and the
daemon's CPU time and memory. No time is asserted.

Usage: browsers_test.py [SECONDS]
"""
import gzip
import http.client
import json
import socket
import statistics
import sys
import threading
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "e2e"))
from harness import OPENMETRICS, Daemon  # noqa: E402

BROWSERS = 50
SECONDS = 10.0
SCRAPES_A_SECOND = 5


class Browser(threading.Thread):
    """Polls as the page does: the sparklines once, then the live values once a second, on one connection."""

    def __init__(self, port: int, until: float):
        super().__init__(daemon=True)
        self.port, self.until, self.received, self.answers, self.wrong = port, until, 0, 0, []
        self.seconds, self.last = 0.0, b""

    def run(self) -> None:
        begun = time.monotonic()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        path = "/api/v1/live?sparklines=1"
        while time.monotonic() < self.until:
            connection.request("GET", path, headers={"Accept-Encoding": "gzip"})
            response = connection.getresponse()
            self.last = response.read()
            if response.status != 200:
                self.wrong.append(response.status)
            self.received += len(self.last) + sum(len(k) + len(v) + 4 for k, v in response.getheaders()) + 19
            self.answers += 1
            path = "/api/v1/live"
            time.sleep(1)
        connection.close()
        self.seconds = time.monotonic() - begun


class StreamReader(threading.Thread):
    """Reads the stream, or stalls: then it has next to no room for what it does not read, and so has the daemon's kernel for it."""

    def __init__(self, port: int, until: float, stalls: bool):
        super().__init__(daemon=True)
        self.until, self.stalls, self.received, self.begun = until, stalls, b"", time.monotonic()
        self.socket = socket.socket()
        if stalls:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
        self.socket.settimeout(10)
        self.socket.connect(("127.0.0.1", port))
        self.socket.sendall(b"GET /api/v1/stream HTTP/1.1\r\nHost: x\r\n\r\n")

    def run(self) -> None:
        while not self.stalls and time.monotonic() < self.until:
            self.received += self.socket.recv(1 << 16)
        time.sleep(max(0.0, self.until - time.monotonic()))
        self.seconds = time.monotonic() - self.begun
        self.socket.close()


def scrape_times(port: int, seconds: float) -> list[float]:
    """Milliseconds of each scrape, the data of a new page included: gzip, as Prometheus asks."""
    times, connection = [], http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        begun = time.monotonic()
        connection.request("GET", "/metrics", headers={"Accept": OPENMETRICS, "Accept-Encoding": "gzip"})
        response = connection.getresponse()
        body = response.read()
        times.append(1000 * (time.monotonic() - begun))
        assert response.status == 200 and gzip.decompress(body).endswith(b"# EOF\n")
        time.sleep(1 / SCRAPES_A_SECOND)
    connection.close()
    return times


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def resident_mib(pid: int) -> float:
    return next(int(line.split()[1]) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS")) / 1024


def line(name: str, times: list[float], cpu: float, memory: float) -> str:
    return (f"{name:10} scrapes: median {statistics.median(times):.2f} ms, 95 % {statistics.quantiles(times, n=20)[-1]:.2f} ms, "
            f"longest {max(times):.2f} ms; the daemon used {100 * cpu:.2f} % of a core, {memory:.1f} MiB")


class BrowsersTest(unittest.TestCase):
    def test_fifty_browsers(self):
        with Daemon("--simulate=8") as daemon:
            time.sleep(2)
            lines, browsers, readers = [], [], []
            for name, seconds in (("before", SECONDS / 2), ("polls", SECONDS), ("between", SECONDS / 2), ("streams", SECONDS), ("after", SECONDS / 2)):
                until = time.monotonic() + seconds
                if name == "polls":
                    browsers = [Browser(daemon.port, until) for _ in range(BROWSERS)]
                if name == "streams":
                    readers = [StreamReader(daemon.port, until, stalls=i % 2 == 1) for i in range(BROWSERS)]
                for client in browsers if name == "polls" else readers if name == "streams" else []:
                    client.start()
                cpu, begun = cpu_seconds(daemon.process.pid), time.monotonic()
                times = scrape_times(daemon.port, seconds)
                lines.append(line(name, times, (cpu_seconds(daemon.process.pid) - cpu) / (time.monotonic() - begun), resident_mib(daemon.process.pid)))
                for client in browsers + readers:
                    client.join(30)
            print(*lines, sep="\n")
            rate = statistics.mean(browser.received / browser.seconds for browser in browsers)
            print(f"{BROWSERS} browsers: {rate:.0f} bytes/s each, {sum(b.answers for b in browsers)} answers")
            for browser in browsers:
                self.assertEqual(browser.wrong, [])
                self.assertGreater(browser.answers, SECONDS / 3)
                self.assertEqual(len(json.loads(gzip.decompress(browser.last))["gpus"]), 8)
            live = [reader for reader in readers if not reader.stalls]
            rate = statistics.mean(len(reader.received) / reader.seconds for reader in live)
            pictures = [reader.received.count(b"event: picture\n") for reader in live]
            print(f"{BROWSERS} stream readers, half of them stalled: {rate:.0f} bytes/s to each that reads, {sum(pictures)} pictures")
            self.assertGreater(min(pictures), SECONDS / 3)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        SECONDS = float(sys.argv.pop())
    unittest.main()
