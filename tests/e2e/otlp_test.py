#!/usr/bin/env python3
"""OTLP over HTTP: what a receiver gets is what the page has, on machines of all vendors, and a receiver that is slow, refuses, answers half,
hangs and comes back costs neither scrapes nor memory. tests/interop/otlp_collector_test.py lets OpenTelemetry's own programs read the same."""
from __future__ import annotations

import gzip
import math
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import at_once
from harness import BINARY, OPENMETRICS, Daemon, is_sanitized, parse_openmetrics_strictly, wait_until
from pki import Pki
from protobuf_test import varint
from workloads_test import GROUPS, UNIT, machine

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/fakes/nvml")]
from captures_test import MAKE_SYSROOT, cards  # noqa: E402
from machine import LIBRARY, SCENARIOS, Machine  # noqa: E402

PATH = "/v1/metrics"
KINDS = {5: "gauge", 7: "sum", 9: "histogram", 11: "summary"}
UNITS = {"bytes": "By", "bytes_per_second": "{bytes_per_second}", "celsius": "Cel", "flops": "{flops}", "frames_per_second": "{frames_per_second}", "hertz": "Hz", "joules": "J",
         "ratio": "1", "seconds": "s", "volts": "V", "watts": "W"}
PAGE = """# HELP a_seconds Ein \u201eText\u201c.
# TYPE a_seconds histogram
a_seconds_bucket{x="\u00e9",le="0.5"} 2
a_seconds_bucket{x="\u00e9",le="2.0"} 2
a_seconds_bucket{x="\u00e9",le="+Inf"} 7
a_seconds_sum{x="\u00e9"} 30.5
a_seconds_count{x="\u00e9"} 7
# TYPE b summary
b{quantile="0.5"} 4
b{quantile="0.9"} 8
b_sum 12
b_count 3
c 1e-300
"""


def fields(data: bytes):
    """Number and value of each field of a message; a value of 8 bytes as they are."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            value, at = varint(data, at)
        else:
            size, at = (8, at) if tag & 7 == 1 else varint(data, at)
            value, at = data[at:at + size], at + size
        yield tag >> 3, value


def numbers(form: str, data: bytes) -> list:
    return [value for value, in struct.iter_unpack(form, data)]


def attributes(pairs: list[bytes]) -> dict[str, str]:
    read = [dict(fields(pair)) for pair in pairs]
    return {pair[1].decode(): dict(fields(pair[2]))[1].decode() for pair in read}


@dataclass
class Point:
    labels: dict[str, str]
    value: object  # a number, or the parts of a histogram or summary
    start: float   # 0: none
    time: float


@dataclass
class Metric:
    unit: str
    help: str
    kind: str
    is_monotonic: bool
    points: list[Point] = field(default_factory=list)


def point_of(kind: str, data: bytes) -> Point:
    found: dict[int, list] = {}
    for number, value in fields(data):
        found.setdefault(number, []).append(value)
    times = [numbers("<Q", found[number][0])[0] / 1e9 if number in found else 0 for number in (2, 3)]
    if kind == "histogram":
        counts, bounds = numbers("<Q", found[6][0]), numbers("<d", b"".join(found.get(7, [])))
        value = {"count": numbers("<Q", found[4][0])[0], "sum": numbers("<d", found[5][0])[0], "counts": counts, "bounds": bounds}
    elif kind == "summary":
        quantiles = [[numbers("<d", v)[0] for _, v in fields(each)] for each in found.get(6, [])]
        value = {"count": numbers("<Q", found[4][0])[0], "sum": numbers("<d", found[5][0])[0], "quantiles": quantiles}
    else:
        value = numbers("<d", found[4][0])[0] if 4 in found else numbers("<q", found[6][0])[0]
    return Point(attributes(found.get(9 if kind == "histogram" else 7, [])), value, *times)


def decode(body: bytes) -> tuple[dict[str, str], dict[str, Metric]]:
    """The resource's attributes, and the metrics of a request by name."""
    into: dict[str, Metric] = {}
    (_, of_resource), = fields(body)
    parts = dict(fields(of_resource))
    for number, data in fields(parts[2]):
        if number != 2:
            continue
        about = list(fields(data))
        name, unit, text = (next((value.decode() for number, value in about if number == wanted), "") for wanted in (1, 3, 2))
        (kind, holder), = [(KINDS[number], value) for number, value in about if number in KINDS]
        inside = list(fields(holder))
        assert kind in ("gauge", "summary") or (2, 2) in inside, f"{name} is not cumulative"
        metric = into.setdefault(name, Metric(unit, text, kind, (3, 1) in inside))
        metric.points += [point_of(kind, value) for number, value in inside if number == 1]
    return attributes([value for number, value in fields(parts[1]) if number == 1]), into


class Receiver:
    """Keeps each request and answers as `answers` says, in turn; afterwards 200."""

    def __init__(self, tls: ssl.SSLContext | None = None):
        self.requests: list[tuple[float, str, dict, bytes]] = []
        self.answers: list = []
        self.read, self.found = 0, {}  # what exports() has decoded
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers["Content-Encoding"] == "gzip":
                    body = gzip.decompress(body)
                receiver.requests.append((time.monotonic(), self.path, dict(self.headers), body))
                answer = receiver.answers.pop(0) if receiver.answers else {}
                time.sleep(answer.get("wait", 0))
                reply = answer.get("body", b"")
                self.send_response(answer.get("status", 200))
                for name, value in {"Content-Length": str(len(reply) + answer.get("missing", 0)), **answer.get("headers", {})}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(reply)
                self.close_connection = "missing" in answer

            def log_message(self, *_) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None  # a client that gave up
        self.port = self.server.server_address[1]
        if tls:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> "Receiver":
        self.thread.start()
        return self

    def __exit__(self, *_) -> None:
        self.server.shutdown()
        self.server.server_close()

    def wait(self, count: int) -> list[tuple[float, str, dict, bytes]]:
        return wait_until(lambda: len(self.requests) >= count and self.requests[:count], f"{count} requests", 30)

    def parse(self, body: bytes) -> dict[str, Metric]:
        return decode(body)[1]

    def exports(self) -> list[tuple[float, dict[str, Metric]]]:
        """The metrics of each export, which may be several requests, by its time."""
        for _, _, _, body in self.requests[self.read:]:
            metrics = self.parse(body)
            self.read += 1
            whole = self.found.setdefault(next(iter(metrics.values())).points[0].time, {})
            for name, metric in metrics.items():
                whole.setdefault(name, Metric(metric.unit, metric.help, metric.kind, metric.is_monotonic)).points.extend(metric.points)
        return sorted(self.found.items())


def frozen(labels: dict[str, str]) -> tuple:
    return tuple(sorted(labels.items()))


def table() -> tuple[list[dict], dict[str, str]]:
    """The mappings and the renamed labels of docs/otlp.md."""
    text = subprocess.run([BINARY, "--print-otlp=markdown"], capture_output=True, text=True, check=True).stdout
    cells = [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| `")]
    rows = [dict(zip(("family", "only", "name", "kind", "unit", "added"), each)) for each in cells if len(each) == 6]
    return rows, dict(each for each in cells if len(each) == 2 and "_" not in each[0].replace("sensor_", ""))


def expected(page: str, has_conventions: bool) -> dict[tuple, tuple]:
    """By name and labels: kind, unit, value, start, as an export of this page of OpenMetrics has them."""
    rows, renamed = table()
    found: dict[tuple, tuple] = {}
    for family in parse_openmetrics_strictly(page):
        created = {frozen(s.labels): s.value for s in family.samples if s.name.endswith("_created")}
        name = family.name + ("_total" if family.type == "counter" else "")
        kind = {"counter": "monotonic sum", "unknown": "gauge"}.get(family.type, family.type)
        for sample in family.samples:
            if sample.name.endswith("_created"):
                continue
            labels = {k: v for k, v in sample.labels.items() if not (family.type == "histogram" and k == "le" or family.type == "summary" and k == "quantile")}
            start = created.get(frozen(labels), 0)
            row = next((r for r in rows if has_conventions and r["family"] == name and (not r["only"] or tuple(r["only"].split("=")) in sample.labels.items())), None)
            if row is None:
                where, what = (name, frozen(labels)), (kind, UNITS.get(family.unit, family.unit))
            else:
                added = dict([row["added"].split("=")]) if row["added"] else {}
                where = row["name"], frozen({**{renamed.get(k, k): v for k, v in labels.items()}, **added})
                what = row["kind"].removesuffix(", integer"), row["unit"]
            if family.type in ("histogram", "summary"):
                _, _, parts, _ = found.get(where, (*what, {}, start))
                bound = sample.labels.get("le") or sample.labels.get("quantile")
                parts[float(bound) if bound else sample.name.removeprefix(family.name)] = sample.value
                found[where] = (*what, parts, start)
            else:
                assert where not in found, where
                value = math.floor(sample.value + 0.5) if row and row["kind"].endswith("integer") else sample.value
                found[where] = (*what, value, start if kind == "monotonic sum" and "sum" in what[0] else 0)
    return found


def received(metrics: dict[str, Metric]) -> dict[tuple, tuple]:
    found = {}
    for name, metric in metrics.items():
        kind = "monotonic sum" if metric.is_monotonic and metric.kind == "sum" else metric.kind
        for point in metric.points:
            value = point.value
            if metric.kind == "histogram":
                total, parts = 0, {}
                for count, bound in zip(value["counts"], [*value["bounds"], float("inf")]):
                    total += count
                    parts[bound] = total
                value = {**parts, "_sum": value["sum"], "_count": value["count"]}
            elif metric.kind == "summary":
                value = {**dict(value["quantiles"]), "_sum": value["sum"], "_count": value["count"]}
            where = name, frozen(point.labels)
            assert where not in found, f"{where} is there twice"
            found[where] = kind, metric.unit, value, point.start
    return found


class EqualPages(unittest.TestCase):
    maxDiff = None
    receiver = Receiver

    def compare(self, *arguments: str, settings: str, env: dict | None = None, has_conventions: bool, meanwhile=lambda daemon: None) -> dict[tuple, tuple]:
        """Two pages around an export: what is the same on both, the export has."""
        with tempfile.TemporaryDirectory(prefix="gpumeter-test-") as folder, self.receiver() as receiver:
            pages, config = Path(folder, "pages"), Path(folder, "gpumeter.yaml")
            pages.mkdir()
            (pages / "outside.prom").write_text(PAGE)
            config.write_text(f"kernel: {{log: off}}\npages: {{folders: [{pages}], trusted: [root]}}\n{settings}\n"
                              f"otlp: {{endpoint: 'http://127.0.0.1:{receiver.port}', interval: 1s, detail: full, semantic_conventions: {str(has_conventions).lower()}}}\n")
            with Daemon(f"--config.file={config}", *arguments, env=env) as daemon:
                page = lambda: expected(daemon.fetch("/metrics", {"Accept": OPENMETRICS}).text, has_conventions)  # noqa: E731
                wait_until(lambda: ("a_seconds", frozen({"x": "\u00e9"})) in page() and len(receiver.exports()) > 2, "the page from outside", 40)
                meanwhile(daemon)
                for _ in range(10):
                    before, began = page(), len(receiver.exports())
                    exports = wait_until(lambda: len(receiver.exports()) > began and receiver.exports(), "an export", 20)
                    after, export = page(), received(exports[began][1])
                    same = {where: what for where, what in before.items() if after.get(where) == what}
                    wrong = [(w, what, export.get(w)) for w, what in same.items() if export.get(w) != (*what[:3], self.nearest(export, w, what[3]))]
                    if not wrong and before.keys() == export.keys():
                        break  # otherwise a value may have moved and come back, or a series has begun
                self.assertEqual(wrong, [])
                self.assertEqual(before.keys(), export.keys())
                self.assertEqual({w: (k, u) for w, (k, u, _, _) in before.items()}, {w: (k, u) for w, (k, u, _, _) in export.items()})
                self.starts_stay([received(metrics) for _, metrics in exports])
                print(f"{len(before)} series, {len(same)} with the same value on both pages, {sum(what[3] > 0 for what in export.values())} with a start")
                return export

    @staticmethod
    def nearest(export: dict, where: tuple, start: float) -> float:
        """The page's start, which has fewer digits. Of a device's counter the page of text has none."""
        kind, _, _, got = export.get(where, ("", "", 0, 0))
        return got if abs(got - start) < 1e-5 or (start == 0 and "monotonic" in kind) else start

    def starts_stay(self, exports: list[dict]) -> None:
        for earlier, later in zip(exports, exports[1:]):
            for where in earlier.keys() & later.keys():
                value, now = earlier[where][2], later[where][2]
                if earlier[where][0] == "monotonic sum" and now >= value:
                    self.assertEqual(earlier[where][3], later[where][3], where)

    def test_simulated_gpus_by_their_own_names(self) -> None:
        with machine() as host:
            pids = host.pid_file("train.pids", [])

            def begin(daemon: Daemon) -> None:
                """A workload, whose counters have a start."""
                host.pid_file("train.pids", [host.start(GROUPS["unit"])])
                wait_until(lambda: daemon.page().of("gpu_workload_energy_joules_created", **UNIT), "a counter with its start")

            export = self.compare(settings=f"collectors: {{simulated: {{enabled: true, devices: 2, processes: ['0={pids},busy=0.5,memory=2GiB']}}, nvidia: {{enabled: false}}}}\npaths: {{procfs: {host.procfs}}}",
                                  has_conventions=False, meanwhile=begin)
        starts = {name: start for (name, _), (_, _, _, start) in export.items() if start > 0}
        self.assertGreater(len(starts), 1)
        self.assertLess(abs(starts["gpu_busy_seconds_total"] - time.time()), 120, "of a counter that only gpumeter counts")
        self.assertNotIn("gpu_info", starts)
        self.assertEqual(export["a_seconds", frozen({"x": "\u00e9"})], ("histogram", "", {0.5: 2, 2.0: 2, float("inf"): 7, "_sum": 30.5, "_count": 7}, 0))
        self.assertEqual(export["b", ()], ("summary", "", {0.5: 4, 0.9: 8, "_sum": 12, "_count": 3}, 0))
        self.assertEqual(export["c", ()], ("gauge", "", 1e-300, 0))

    @unittest.skipIf(is_sanitized() or not LIBRARY.exists() or not cards(), "no captures, or no fake NVML")
    def test_gpus_of_all_vendors_by_the_conventions(self) -> None:
        with tempfile.TemporaryDirectory(prefix="gpumeter-test-") as folder, Machine(SCENARIOS / "h100_8.yaml", 0.5) as machine:
            root = subprocess.run([MAKE_SYSROOT, f"{folder}/machine", *map(str, cards())], capture_output=True, text=True, check=True).stdout.strip()
            export = self.compare(f"--path.sysfs={root}", f"--path.procfs={machine.procfs}", settings=machine.config.read_text(), env=machine.env, has_conventions=True)
        self.assertEqual({name for name, _ in export if name.startswith("hw.")}, {row["name"] for row in table()[0]})


class Receivers(unittest.TestCase):
    def config(self, folder: str, port: int, more: str = "") -> Path:
        config = Path(folder, "gpumeter.yaml")
        config.write_text(f"kernel: {{log: off}}\notlp: {{endpoint: 'http://127.0.0.1:{port}', interval: 1s, timeout: 1s{more}}}\n")
        return config

    def test_each_answer_has_its_consequence(self) -> None:
        partial = b"\x0a\x0b\x08\x05\x12\x07too old"  # {partial_success: {rejected_data_points: 5, error_message: "too old"}}
        with tempfile.TemporaryDirectory(prefix="gpumeter-test-") as folder, Receiver() as receiver:
            receiver.answers = [{"body": partial}, {"status": 429, "headers": {"Retry-After": "3"}}, {}, {"status": 400, "body": b"\x12\x03bad"}, {"status": 503}, {"status": 307, "headers": {"Location": "/"}},
                                {"body": b"x" * 5_000_000}, {"body": b"\x0a", "missing": 5}, {"wait": 3}, {"status": 504}]
            with Daemon("--simulate=1", f"--config.file={self.config(folder, receiver.port)}") as daemon:
                slowest = 0.0
                while len(receiver.requests) < 14:
                    asked = time.monotonic()
                    daemon.fetch("/metrics")
                    slowest = max(slowest, time.monotonic() - asked)
                    time.sleep(0.02)
                page = wait_until(lambda: (p := daemon.page()).one("gpumeter_otlp_up") == 1 and p, "the receiver takes all", 20)
                log = daemon.log
            bodies = [body for _, _, _, body in receiver.requests]
            asked = [at for at, _, _, _ in receiver.requests]
            repeated = [i for i in range(1, len(bodies)) if bodies[i] == bodies[i - 1]]
            # 429, 503, the answer that ends early, the stall and 504 are tried again; partial success, 400, 307 and an endless answer are not.
            self.assertEqual([i for i in repeated if i < 14], [2, 5, 8, 9, 10])
            self.assertGreaterEqual(asked[2] - asked[1], 3)
            self.assertGreaterEqual(asked[5] - asked[4], 0.5)
            counts = [sum(len(m.points) for m in receiver.parse(body).values()) for body in bodies]
            self.assertEqual(page.one("gpumeter_otlp_points_total", outcome="rejected"), 5 + counts[3] + counts[5])
            self.assertEqual(page.one("gpumeter_otlp_points_total", outcome="dropped"), 0)
            times = sorted({at for at, _ in receiver.exports()})
            self.assertTrue(all(later - earlier < 2.5 for earlier, later in zip(times, times[1:])), times)
            self.assertIn('the receiver of OTLP does not take all series" error="too old"', log)
            self.assertIn("the receiver of OTLP takes all series again", log)
            print(f"slowest scrape {slowest * 1000:.0f} ms")
            self.assertLess(slowest, 10, "Prometheus waits so long")

    def test_variables_tls_and_headers(self) -> None:
        with tempfile.TemporaryDirectory(prefix="gpumeter-test-") as folder:
            pki = Pki(folder)
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(f"{folder}/server.crt", f"{folder}/server.key")
            context.load_verify_locations(pki.ca)
            context.verify_mode = ssl.CERT_REQUIRED
            with Receiver(context) as receiver:
                env = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"https://localhost:{receiver.port}/base", "OTEL_EXPORTER_OTLP_CERTIFICATE": str(pki.ca), "OTEL_METRIC_EXPORT_INTERVAL": "1000",
                       "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE": f"{folder}/client.pem", "OTEL_EXPORTER_OTLP_CLIENT_KEY": f"{folder}/client.key",
                       "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20a%2Cb", "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment=test", "K8S_NODE_NAME": "k1"}
                with Daemon("--simulate=1", env=env, detail=None) as daemon:
                    _, path, headers, body = receiver.wait(2)[-1]
                    standard = daemon.page()
                resource, metrics = decode(body)
        self.assertEqual(path, f"/base{PATH}")
        self.assertEqual({name: headers.get(name) for name in ("authorization", "Content-Type", "Content-Encoding")},
                         {"authorization": "Bearer a,b", "Content-Type": "application/x-protobuf", "Content-Encoding": "gzip"})
        self.assertRegex(headers["User-Agent"], r"^gpumeter/\d")
        self.assertLessEqual({"service.name": "gpumeter", "k8s.node.name": "k1", "service.instance.id": "k1", "deployment.environment": "test"}.items(), resource.items())
        self.assertLessEqual({"host.name", "service.version"}, resource.keys())
        self.assertEqual({name for name in metrics if name.startswith("gpu_")} - set(standard.types) - {f"{name}_total" for name in standard.types}, set(), "series beyond the standard page")

    def test_a_receiver_that_hangs_delays_no_stop(self) -> None:
        with Receiver() as receiver:
            receiver.answers = [{"wait": 8}]
            with Daemon("--simulate=1", env={"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{receiver.port}"}) as daemon:
                receiver.wait(1)
                status, took = daemon.stop()
        self.assertEqual(status, 0)
        self.assertLess(took, 5)

    def test_nothing_is_loaded_or_sent_by_default(self) -> None:
        with Daemon("--simulate=1") as daemon:
            self.assertNotIn("libcurl", Path(f"/proc/{daemon.process.pid}/maps").read_text())
            self.assertEqual(daemon.page().of("gpumeter_otlp_up"), {})
        with Daemon("--simulate=1", env={"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}) as daemon:
            self.assertIn('nothing is sent by OTLP" error="OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf', daemon.log)


if __name__ == "__main__":
    at_once.main(2)
