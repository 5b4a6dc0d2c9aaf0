#!/usr/bin/env python3
"""Fifty browsers poll the page of 8 GPUs while Prometheus scrapes. Prints the scrapes' times before, meanwhile and after, the bytes
that a browser receives a second, and the daemon's CPU time. No time is asserted.

Usage: browsers_test.py [SECONDS]
"""
import gzip
import http.client
import json
import statistics
import sys
import threading
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "e2e"))
from harness import OPENMETRICS, Daemon  # noqa: E402

BROWSERS = 50
SECONDS = 20.0
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


def line(name: str, times: list[float], cpu: float) -> str:
    return (f"{name:10} scrapes: median {statistics.median(times):.2f} ms, 95 % {statistics.quantiles(times, n=20)[-1]:.2f} ms, "
            f"longest {max(times):.2f} ms; the daemon used {100 * cpu:.2f} % of a core")


class BrowsersTest(unittest.TestCase):
    def test_fifty_browsers(self):
        with Daemon("--simulate=8") as daemon:
            time.sleep(2)
            lines, browsers = [], []
            for name, seconds in (("before", SECONDS / 4), ("meanwhile", SECONDS), ("after", SECONDS / 4)):
                if name == "meanwhile":
                    browsers = [Browser(daemon.port, time.monotonic() + seconds) for _ in range(BROWSERS)]
                    for browser in browsers:
                        browser.start()
                cpu, begun = cpu_seconds(daemon.process.pid), time.monotonic()
                times = scrape_times(daemon.port, seconds)
                lines.append(line(name, times, (cpu_seconds(daemon.process.pid) - cpu) / (time.monotonic() - begun)))
            for browser in browsers:
                browser.join(30)
            print(*lines, sep="\n")
            rate = statistics.mean(browser.received / browser.seconds for browser in browsers)
            print(f"{BROWSERS} browsers: {rate:.0f} bytes/s each, {sum(b.answers for b in browsers)} answers")
            for browser in browsers:
                self.assertEqual(browser.wrong, [])
                self.assertGreater(browser.answers, SECONDS / 3)
                self.assertEqual(len(json.loads(gzip.decompress(browser.last))["gpus"]), 8)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        SECONDS = float(sys.argv.pop())
    unittest.main()
