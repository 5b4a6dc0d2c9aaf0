#!/usr/bin/env python3
"""A real Prometheus scrapes the protobuf page, which it asks for with native histograms, and stores what the text page shows: its histograms
as native ones, whose buckets and quantiles are those of the durations that the test sent, with the exemplars of two of them."""
import bisect
import json
import math
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.parse
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from harness import OPENMETRICS, TEXT, Page, free_port, parse_openmetrics_strictly, text_page, wait_until
from jobs import RECORDED, Folder

PROTOBUF = "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
TYPES = {0: "counter", 1: "gauge", 4: "histogram"}
HISTOGRAMS = ("ml_step_duration_seconds", "ml_inference_duration_seconds")
WITHIN = 2 ** (1 / 8) - 1  # the width of a bucket
SOURCE = random.Random(11)
TRACED = {"4bf92f3577b34da6a3ce929d0e0e4736": 0.6, "0af7651916cd43dd8448eb211c80319c": 2.5}  # durations by trace
DURATIONS = [0.0003, 0.5, 0.50001, 1.0, 2.0, 4200.0] + [SOURCE.lognormvariate(-1, 1.2) for _ in range(494)]


def varint(data: bytes, at: int) -> tuple[int, int]:
    value, shift = 0, 0
    while data[at] & 0x80:
        value, shift, at = value | (data[at] & 0x7f) << shift, shift + 7, at + 1
    return value | data[at] << shift, at + 1


def fields(data: bytes):
    """Number and value of each field of a message."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            value, at = varint(data, at)
        elif tag & 7 == 1:
            value, at = struct.unpack_from("<d", data, at)[0], at + 8
        else:
            assert tag & 7 == 2, tag
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        yield tag >> 3, value


def messages(page: bytes):
    at = 0
    while at < len(page):
        size, at = varint(page, at)
        yield page[at:at + size]
        at += size


def samples_of(name: str, metric: bytes):
    """Names, labels and values, as the text page has them."""
    parts = list(fields(metric))
    labels = {pair[1].decode(): pair[2].decode() for pair in (dict(fields(value)) for number, value in parts if number == 1)}
    for number, value in parts:
        if number in (2, 3):  # gauge, counter
            yield name, labels, dict(fields(value))[1]
        if number == 7:
            for inner, content in fields(value):
                if inner == 3:
                    bucket = dict(fields(content))
                    yield f"{name}_bucket", {**labels, "le": bucket[2]}, bucket[1]
                elif inner in (1, 2):
                    yield name + {1: "_count", 2: "_sum"}[inner], labels, content


def decoded(page: bytes) -> tuple[dict, dict[str, str]]:
    samples, types = {}, {}
    for message in messages(page):
        head = {number: value for number, value in fields(message) if number != 4}
        name = head[1].decode()
        types[name] = TYPES[head[3]]
        for sample, labels, value in (each for number, metric in fields(message) if number == 4 for each in samples_of(name, metric)):
            assert (where := key_of(sample, labels)) not in samples, where
            samples[where] = value
    return samples, types


def key_of(name: str, labels: dict) -> tuple:
    numbers = {**labels, "le": float(labels["le"])} if "le" in labels else labels
    return name, tuple(sorted(numbers.items()))


def keys_of(page: Page) -> set:
    return {key_of(name, dict(labels)) for name, labels in page}


class Relay(BaseHTTPRequestHandler):
    """Between Prometheus and the daemon; notes the types of the pages."""
    types: list[str] = []
    port = 0

    def do_GET(self) -> None:
        asked = {name: self.headers[name] for name in ("Accept", "Accept-Encoding") if name in self.headers}
        with urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{self.port}{self.path}", headers=asked), timeout=30) as answer:
            body = answer.read()
            self.types.append(answer.headers["Content-Type"])
            self.send_response(200)
            for name in ("Content-Type", "Content-Encoding"):
                if answer.headers[name]:
                    self.send_header(name, answer.headers[name])
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


class ProtobufTest(unittest.TestCase):
    # Debian's; tests/interop/newer_prometheus_test.py has others.
    global_config = {"scrape_interval": "1s"}
    flags = ["--enable-feature=native-histograms,exemplar-storage"]
    exemplars = 1  # that it takes of a native histogram

    @classmethod
    def setUpClass(cls):
        folder = cls.enterClassContext(Folder())
        cls.daemon = cls.enterClassContext(folder.daemon())
        folder.send(*RECORDED.read_text().splitlines(), f"ml.step.seconds:{':'.join(map(str, DURATIONS))}|d|#run:known",
                    *(f"ml.step.seconds:{seconds}|d|#run:traced,trace_id:{trace},span_id:00f067aa0ba902b7" for trace, seconds in TRACED.items()))
        cls.page = wait_until(lambda: (page := text_page(cls.daemon.fetch("/metrics", {"Accept": TEXT}).text)).of(HISTOGRAMS[0] + "_count", run="known")
                              and page, "a histogram on the page", every=0.5)

    def test_it_has_the_series_of_the_text_page(self):
        answer = self.daemon.fetch("/metrics", {"Accept": PROTOBUF.replace(" ", "")})
        self.assertEqual(answer.header("Content-Type"), PROTOBUF + "; escaping=underscores")
        samples, types = decoded(answer.body)
        self.assertEqual(set(samples) ^ keys_of(self.page), set())
        self.assertEqual({types[name] for name in HISTOGRAMS if name in types}, {"histogram"})
        self.assertEqual((types["gpu_energy_joules_total"], types["gpu_up"]), ("counter", "gauge"))
        for name, labels in self.page:
            if name.startswith("ml_step_duration"):
                self.assertEqual(samples[key_of(name, dict(labels))], self.page[name, labels])

    def test_openmetrics_has_the_traces_on_the_lines_of_their_buckets(self):
        page = parse_openmetrics_strictly(self.daemon.fetch("/metrics", {"Accept": OPENMETRICS}).text)
        found = {sample.exemplar.labels["trace_id"]: (sample.name, sample.exemplar.value, float(sample.labels["le"]))
                 for family in page for sample in family.samples if sample.exemplar}
        self.assertEqual({trace: value for trace, (_, value, _) in found.items()}, TRACED)
        for name, value, bound in found.values():
            self.assertEqual(name, HISTOGRAMS[0] + "_bucket")
            self.assertTrue(value <= bound < 2 * value, (value, bound))

    def test_a_real_prometheus_stores_it(self):
        Relay.port = self.daemon.port
        relay = ThreadingHTTPServer(("127.0.0.1", 0), Relay)
        threading.Thread(target=relay.serve_forever, daemon=True).start()
        self.addCleanup(relay.server_close)
        self.addCleanup(relay.shutdown)
        folder, port = self.enterContext(tempfile.TemporaryDirectory(prefix="gpumeter-test-")), free_port()
        Path(folder, "prometheus.yml").write_text(json.dumps({"global": self.global_config, "scrape_configs": [
            {"job_name": "gpumeter", "static_configs": [{"targets": [f"127.0.0.1:{relay.server_port}"]}]}]}))
        with Path(folder, "log").open("wb") as log, subprocess.Popen(
                ["prometheus", *self.flags, f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
                 f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log) as server:
            try:
                self.check_stored(f"http://127.0.0.1:{port}/api/v1/")
            finally:
                server.terminate()
        self.assertEqual({kind.split("; escaping")[0] for kind in Relay.types}, {PROTOBUF})

    def check_stored(self, url: str) -> None:
        def ask(query: str) -> list[dict]:
            try:
                with urllib.request.urlopen(f"{url}query?{urllib.parse.urlencode({'query': query})}", timeout=30) as answer:
                    return json.load(answer)["data"]["result"]
            except OSError:
                return []
        wait_until(lambda: ask("min_over_time(up[3s]) == 1 and count_over_time(up[1m]) > 2"), "three scrapes", every=0.5)
        stored = {key_of(series["metric"].pop("__name__"), {name: value for name, value in series["metric"].items() if name not in ("job", "instance")})
                  for series in ask('{__name__=~"gpu_.+|ml_.+"}')}
        shown = {each for each in keys_of(self.page) if each[0].startswith(("gpu_", "ml_"))}
        of_histograms = {each for each in shown if each[0].startswith(HISTOGRAMS)}
        self.assertEqual(stored ^ (shown - of_histograms | {(name.removesuffix("_count"), labels) for name, labels in of_histograms if name.endswith("_count")}),
                         set())
        self.check_histogram(lambda query: float(ask(query)[0]["value"][1]), ask(HISTOGRAMS[0] + '{run="known"}')[0]["histogram"][1])
        self.check_exemplars(url)
        of_run = [sum(("run", "known") in labels for _, labels in of) for of in (shown, stored)]
        print(f"series of a run: {of_run[0]}, with native histograms {of_run[1]}")
        self.assertEqual(of_run[0] - of_run[1], 169)  # of 170

    def check_exemplars(self, url: str) -> None:
        asked = urllib.parse.urlencode({"query": HISTOGRAMS[0] + '{run="traced"}', "start": time.time() - 300, "end": time.time() + 300})
        with urllib.request.urlopen(f"{url}query_exemplars?{asked}", timeout=30) as answer:
            found = [exemplar for series in json.load(answer)["data"] for exemplar in series["exemplars"]]
        print(f"{len(found)} exemplars of {len(TRACED)}")
        self.assertEqual(len(found), self.exemplars)
        self.assertLessEqual({(each["labels"]["trace_id"], float(each["value"])) for each in found}, set(TRACED.items()))
        self.assertEqual({each["labels"]["span_id"] for each in found}, {"00f067aa0ba902b7"})

    def check_histogram(self, value, stored: dict) -> None:
        """Has each duration in its bucket, and quantiles within the width of one."""
        bounds = [2 ** (index / 8) for index in range(-88, 99)]
        counts = {index: sum(bisect.bisect_left(bounds, seconds - 1e-9 * seconds) == index for seconds in DURATIONS) for index in range(len(bounds))}
        known = [(bounds[index - 1] if index else -bounds[0], bounds[index], count) for index, count in counts.items() if count]
        self.assertEqual(len(stored["buckets"]), len(known))
        for (_, *found), expected in zip(stored["buckets"], known):
            for number, wanted in zip(map(float, found), expected):
                self.assertAlmostEqual(number / wanted, 1, 12, (found, expected))
        self.assertEqual(int(stored["count"]), len(DURATIONS))
        self.assertAlmostEqual(float(stored["sum"]), sum(DURATIONS), 3)
        ordered = sorted(DURATIONS)
        for share in (0.1, 0.5, 0.95, 0.99):
            exact = ordered[math.ceil(share * len(ordered)) - 1]
            found = value(f'histogram_quantile({share}, {HISTOGRAMS[0]}{{run="known"}})')
            print(f"{share:.0%} of the durations: {found:.4f} s, exactly {exact:.4f} s, off by {found / exact - 1:+.2%}")
            self.assertLess(abs(found / exact - 1), WITHIN)


if __name__ == "__main__":
    if not shutil.which("prometheus"):
        print("skipped: there is no prometheus (package prometheus)")
        sys.exit(77)
    unittest.main(verbosity=2)
