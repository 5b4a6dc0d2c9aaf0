#!/usr/bin/env python3
"""Prometheus 3, which Debian lacks: it stores the protobuf page as Debian's does, takes the starts of counters, and what it receives by OTLP is
what it scrapes. Requires Go (as go_tls) and Go's modules."""
from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "tests/e2e"), str(HERE)]
import protobuf_test as own  # noqa: E402
from go_tls_test import GO  # noqa: E402
from harness import OPENMETRICS, Daemon, free_port, parse_openmetrics_strictly, wait_until  # noqa: E402
from jobs import RECORDED, Folder  # noqa: E402

VERSION = "v0.316.0"  # the module's, of Prometheus 3.16
PATIENCE = 60
COUNTED = {"gpu_busy_seconds_total", "gpu_throttle_seconds_total", "gpu_observed_seconds_total"}


def setUpModule() -> None:
    """The program is the first on the PATH. Without its discoveries of clouds, it is built in a third of the time."""
    folder = unittest.enterModuleContext(tempfile.TemporaryDirectory(prefix="gpumeter-test-"))
    subprocess.run([GO, "install", "-tags", "remove_all_sd", f"github.com/prometheus/prometheus/cmd/prometheus@{VERSION}"], check=True, timeout=1500,
                   env={**os.environ, "GOBIN": folder})
    os.environ["PATH"] = f"{folder}:{os.environ['PATH']}"


class ProtobufPage(own.ProtobufTest):
    global_config = {"scrape_interval": "1s", "scrape_native_histograms": True}
    flags = ["--enable-feature=exemplar-storage"]
    exemplars = len(own.TRACED)


class Server:
    """Scrapes the daemon as the job "scraped", each second."""

    def __init__(self, folder: str, daemon: Daemon, *flags: str, port: int = 0):
        self.port = port or free_port()
        config = {"global": ProtobufPage.global_config, "scrape_configs": [{"job_name": "scraped", "static_configs": [{"targets": [f"127.0.0.1:{daemon.port}"]}]}]}
        Path(folder, "prometheus.yml").write_text(json.dumps(config))
        self.log = Path(folder, "log").open("wb")
        self.process = subprocess.Popen(["prometheus", *flags, f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data", f"--web.listen-address=127.0.0.1:{self.port}"],
                                        stdout=self.log, stderr=self.log)

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(30)
        self.log.close()

    def ask(self, query: str) -> list[dict]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/v1/query?{urllib.parse.urlencode({'query': query})}", timeout=30) as answer:
                return json.load(answer)["data"]["result"]
        except OSError:
            return []


def key_of(series: dict) -> tuple:
    return tuple(sorted((name, value) for name, value in series["metric"].items() if name not in ("job", "instance")))


class Starts(unittest.TestCase):
    def test_a_counter_begins_with_0_at_its_start(self) -> None:
        """Those whose start is on the page of text, and those of the device, which only the protobuf page has."""
        with Folder() as folder, folder.daemon() as daemon, tempfile.TemporaryDirectory(prefix="gpumeter-test-") as data:
            folder.send(*RECORDED.read_text().splitlines())
            starts = wait_until(lambda: self.starts(daemon), "counters with a start", PATIENCE)
            first = time.time()  # of all scrapes
            with Server(data, daemon, "--enable-feature=created-timestamp-zero-ingestion") as server:
                wait_until(lambda: server.ask("count_over_time(up[1m]) > 2"), "three scrapes", PATIENCE)
                stored = {key_of(series): series["values"][0] for series in server.ask('{__name__=~"gpu_.+|ml_.+"}[1h]') if "values" in series}
        wrong = {key: (start, stored.get(key)) for key, start in starts.items() if key not in stored or abs(stored[key][0] - start) > 0.002 or float(stored[key][1]) != 0}
        self.assertEqual(wrong, {})
        of_device = {dict(key)["__name__"] for key, (start, value) in stored.items() if float(value) == 0 and start < first} & COUNTED
        self.assertEqual(of_device, COUNTED)
        print(f"{len(starts)} short-lived counters and {len(of_device)} families of the device begin with 0 at their start, of {len(stored)} series")

    @staticmethod
    def starts(daemon: Daemon) -> dict[tuple, float]:
        """Histograms are left out: Prometheus stores them as native ones, without the names of the text page."""
        found = {}
        for family in parse_openmetrics_strictly(daemon.fetch("/metrics", {"Accept": OPENMETRICS}).text):
            for sample in family.samples:
                if family.type == "counter" and sample.name.endswith("_created"):
                    found[tuple(sorted({**sample.labels, "__name__": family.name + "_total"}.items()))] = sample.value
        return found


class Received(unittest.TestCase):
    maxDiff = None

    def test_by_otlp_it_stores_what_it_scrapes(self) -> None:
        port = free_port()
        config = f"otlp: {{endpoint: 'http://127.0.0.1:{port}/api/v1/otlp/v1/metrics', interval: 1s, detail: full, semantic_conventions: false}}\n"
        with tempfile.TemporaryDirectory(prefix="gpumeter-test-") as data, Folder(config) as folder, folder.daemon() as daemon:
            folder.send(*RECORDED.read_text().splitlines(), f"ml.step.seconds:{':'.join(map(str, own.DURATIONS))}|d|#run:known")
            with Server(data, daemon, "--web.enable-otlp-receiver", port=port) as server:
                wait_until(lambda: server.ask("count_over_time(up[1m]) > 5") and server.ask('count_over_time(gpu_up{job="gpumeter"}[1m]) > 5'), "scrapes and exports", PATIENCE)
                scraped, received = ({key_of(series): series for series in server.ask('{__name__=~"gpu_.+|ml_.+",job="%s"}' % job)} for job in ("scraped", "gpumeter"))
        print(f"{len(scraped)} series scraped, {len(received)} received")
        self.assertEqual(sorted(received.keys() - scraped.keys()), [])
        self.assertEqual(sorted(scraped.keys() - received.keys()), [])
        histograms = [key for key, series in scraped.items() if "histogram" in series]
        self.assertGreater(len(histograms), 0)
        for key in histograms:
            of_page, of_otlp = (series[key]["histogram"][1] for series in (scraped, received))
            # Prometheus drops the zero threshold of OTLP (histograms.go, defaultZeroThreshold), so that it is left out here.
            wide = [bucket for bucket in of_page["buckets"] if float(bucket[1]) < 0]
            self.assertEqual(of_otlp["buckets"][len(wide):], of_page["buckets"][len(wide):], key)
            self.assertEqual([bucket[3] for bucket in of_otlp["buckets"]], [bucket[3] for bucket in of_page["buckets"]], key)
            self.assertEqual((of_otlp["count"], of_otlp["sum"]), (of_page["count"], of_page["sum"]), key)


if __name__ == "__main__":
    if not GO:
        print("skipped: no Go compiler")
        sys.exit(77)
    unittest.main(verbosity=2)
