#!/usr/bin/env python3
"""A real Prometheus scrapes the simulated daemon, and the test compares rate() with the known load of the simulation.

The truth is the simulation's own options: each GPU is busy for `duty` of every `period`, and its power is `busy_power`
while it is busy, `idle_power` while not. Three scrape intervals of 5 s are two periods of 7.5 s, so the window holds
whole periods: what is left of a difference is the meter's error, not the window's.

GPUMETER_PROMETHEUS_SECONDS: how long it scrapes (default 120).
"""
import json
import os
import subprocess
import tempfile
import time
import unittest
import urllib.parse
import urllib.request
from pathlib import Path

from harness import Daemon, free_port, wait_until

SECONDS = int(os.environ.get("GPUMETER_PROMETHEUS_SECONDS", "120"))
SCRAPE, PERIOD = 5, 7.5
WINDOW = (SECONDS - 15) // 15 * 15  # whole scrape intervals and whole periods, past the first scrapes
# Half an interval more, so that the window's first scrape is surely in it; rate() divides by the scrapes' own span.
RANGE = f"{WINDOW * 1000 + SCRAPE * 500}ms"
DUTY, IDLE, BUSY = 0.37, 90.0, 420.0
MEAN_POWER = IDLE + (BUSY - IDLE) * DUTY
GPUS = ("0", "1")

CONFIG = f"""
collectors:
  simulated:
    enabled: true
    devices: {len(GPUS)}
    period: 7500ms
    duty: {DUTY}
    idle_power: {IDLE}
    busy_power: {BUSY}
  amd:
    enabled: false
"""
PROMETHEUS = """
global:
  scrape_interval: {scrape}s
scrape_configs:
  - job_name: gpumeter
    static_configs:
      - targets: ["127.0.0.1:{port}"]
"""


class Prometheus:
    """Debian's server with an empty database of its own; a context manager."""

    def __init__(self, folder: str, target: int):
        self.url = f"http://127.0.0.1:{free_port()}"
        Path(folder, "prometheus.yml").write_text(PROMETHEUS.format(scrape=SCRAPE, port=target))
        self.log = open(f"{folder}/prometheus.log", "wb")
        self.process = subprocess.Popen(
            ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
             f"--web.listen-address={self.url.removeprefix('http://')}"], stdout=self.log, stderr=self.log)

    def __enter__(self) -> "Prometheus":
        return self

    def __exit__(self, *_) -> None:
        self.process.terminate()
        self.process.wait(30)
        self.log.close()

    def api(self, path: str, **query):
        with urllib.request.urlopen(f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(query, True)}", timeout=30) as answer:
            return json.load(answer)["data"]

    def by_gpu(self, query: str, at: float) -> dict[str, float]:
        return {r["metric"].get("gpu", ""): float(r["value"][1]) for r in self.api("query", query=query, time=at)["result"]}

    def scrapes(self) -> list[float]:
        """The times of all scrapes so far."""
        result = self.api("query", query=f"up[{SECONDS + 60}s]")["result"]
        return [at for at, _ in result[0]["values"]] if result else []


def try_scrapes(prometheus: Prometheus) -> list[float]:
    try:
        return prometheus.scrapes()
    except OSError:
        return []


class PrometheusTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="gpumeter-test-"))
        config = Path(folder, "gpumeter.yaml")
        config.write_text(CONFIG)
        daemon = cls.enterClassContext(Daemon(f"--config.file={config}"))
        cls.prometheus = cls.enterClassContext(Prometheus(folder, daemon.port))
        first = wait_until(lambda: try_scrapes(cls.prometheus), "the first scrape", 60, every=0.5)[0]
        time.sleep(max(0.0, first + SECONDS - time.time()))
        cls.at = cls.prometheus.scrapes()[-1]

    def by_gpu(self, query: str) -> dict[str, float]:
        return self.prometheus.by_gpu(query.replace("RANGE", RANGE), self.at)

    def assert_within_one_percent(self, measured: dict[str, float], truth: float, what: str):
        self.assertEqual(set(measured), set(GPUS))
        for gpu, value in measured.items():
            print(f"{what}, gpu {gpu}: {value:.5g}, truth {truth:.5g}, off by {100 * (value / truth - 1):+.2f} %")
            self.assertAlmostEqual(value / truth, 1, delta=0.01, msg=f"{what}, gpu {gpu}")

    def test_every_scrape_succeeded(self):
        self.assertEqual(list(self.by_gpu("min_over_time(up[RANGE])").values()), [1])
        target, = self.prometheus.api("targets")["activeTargets"]
        self.assertEqual((target["health"], target["lastError"]), ("up", ""))
        with urllib.request.urlopen(self.prometheus.url + "/metrics", timeout=30) as answer:
            own = answer.read().decode()
        refused = [line for line in own.splitlines() if line.startswith("prometheus_target_scrapes_") and not line.endswith(" 0")]
        self.assertEqual(refused, [])

    def test_it_scraped_openmetrics(self):
        # Only OpenMetrics names a counter's family without _total and gives its unit.
        metadata, = self.prometheus.api("metadata", metric="gpu_busy_seconds")["gpu_busy_seconds"]
        self.assertEqual((metadata["type"], metadata["unit"]), ("counter", "seconds"))

    def test_counters_never_fall(self):
        names = [n for n in self.prometheus.api("label/__name__/values") if n.endswith("_total")]
        self.assertIn("gpu_energy_joules_total", names)
        resets = {name: max(self.by_gpu(f"resets({name}[RANGE])").values(), default=0) for name in names}
        self.assertEqual({name: count for name, count in resets.items() if count}, {})
        print(f"{len(names)} counter families without a reset in {WINDOW} s")

    def test_busy_rate_is_the_duty_cycle(self):
        ratio = self.by_gpu("rate(gpu_busy_seconds_total[RANGE])"
                            ' / on(gpu) rate(gpu_observed_seconds_total{tier="fast"}[RANGE])')
        self.assert_within_one_percent(ratio, DUTY, "rate(busy) / rate(observed)")

    def test_energy_rate_is_the_mean_power(self):
        self.assert_within_one_percent(self.by_gpu("rate(gpu_energy_joules_total[RANGE])"), MEAN_POWER, "rate(energy)")

    def test_the_plain_gauges_err(self):
        """No bound to hold: shows what scraping gauges would have made of the same load."""
        for name, truth in (("gpu_utilization_ratio", DUTY), ("gpu_power_watts", MEAN_POWER)):
            means = self.by_gpu(f"avg_over_time({name}[RANGE])")
            self.assertEqual(set(means), set(GPUS))
            for gpu, value in means.items():
                print(f"avg_over_time({name}), gpu {gpu}: {value:.5g}, truth {truth:.5g}, off by {100 * (value / truth - 1):+.1f} %")


if __name__ == "__main__":
    unittest.main(verbosity=2)
