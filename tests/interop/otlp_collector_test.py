#!/usr/bin/env python3
"""OpenTelemetry's own readers of what gpumeter sends: the Collector's receiver (go_collector) and the SDK's messages. Both read what the page has. The SDK's spans are exemplars.
Requires Go (as go_tls) of the version in go_collector/go.mod, and the Go modules named there."""
from __future__ import annotations

import json
import math
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import ExponentialHistogramDataPoint
from opentelemetry.sdk.trace import TracerProvider

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "tests/e2e"), str(HERE), str(HERE.parents[1] / "packaging/python")]
import gpumeter  # noqa: E402
import otlp_test as own  # noqa: E402
from go_tls_test import GO  # noqa: E402
from harness import free_port, wait_until  # noqa: E402
from jobs import Folder  # noqa: E402

KINDS = ("gauge", "sum", "histogram", "summary")


def attributes(pairs: list[dict]) -> dict[str, str]:
    return {pair["key"]: pair["value"]["stringValue"] for pair in pairs}


def value_of(kind: str, point: dict) -> object:
    if kind == "histogram":
        return {"count": int(point["count"]), "sum": point["sum"], "counts": [int(each) for each in point["bucketCounts"]], "bounds": point.get("explicitBounds", [])}
    if kind == "summary":
        return {"count": int(point["count"]), "sum": point["sum"], "quantiles": [[each["quantile"], each["value"]] for each in point["quantileValues"]]}
    return int(point["asInt"]) if "asInt" in point else float(point["asDouble"])


def metrics_of(export: dict) -> dict[str, own.Metric]:
    """From OTLP's JSON."""
    of_resource, = export["resourceMetrics"]
    scope, = of_resource["scopeMetrics"]
    found = {}
    for metric in scope["metrics"]:
        kind = next(each for each in KINDS if each in metric)
        data = metric[kind]
        assert kind in ("gauge", "summary") or data["aggregationTemporality"] == 2
        points = [own.Point(attributes(point.get("attributes", [])), value_of(kind, point), int(point.get("startTimeUnixNano", 0)) / 1e9, int(point["timeUnixNano"]) / 1e9)
                  for point in data["dataPoints"]]
        found[metric["name"]] = own.Metric(metric.get("unit", ""), metric.get("description", ""), kind, data.get("isMonotonic", False), points)
    return found


class Sdk(own.Receiver):
    """The messages of opentelemetry-proto read each request."""

    def parse(self, body: bytes) -> dict[str, own.Metric]:
        return metrics_of(MessageToDict(ExportMetricsServiceRequest.FromString(body), use_integers_for_enums=True))


class Collector(own.Receiver):
    """The Collector receives the requests and prints them as JSON."""

    program = ""

    def __enter__(self) -> "Collector":
        self.port = free_port()
        self.process = subprocess.Popen([self.program, f"127.0.0.1:{self.port}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.thread = threading.Thread(target=lambda: self.requests.extend((0, "", {}, line) for line in self.process.stdout), daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_) -> None:
        self.process.kill()
        self.process.wait()
        self.thread.join()
        self.process.stdout.close()
        self.process.stdin.close()
        self.server.server_close()

    def parse(self, body: bytes) -> dict[str, own.Metric]:
        return metrics_of(json.loads(body))


class OfTheSdk(own.EqualPages):
    receiver = Sdk


@unittest.skipUnless(GO, "no Go compiler")
class OfTheCollector(own.EqualPages):
    receiver = Collector

    @classmethod
    def setUpClass(cls) -> None:
        folder = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="gpumeter-test-"))
        Collector.program = f"{folder}/collector"
        subprocess.run([GO, "build", "-mod=readonly", "-buildvcs=false", "-o", Collector.program, "."], cwd=HERE / "go_collector", check=True, timeout=900,
                       env={**os.environ, "GOFLAGS": os.environ.get("GOFLAGS", ""), "GOTOOLCHAIN": "local"})


class Served(unittest.TestCase):
    """A server of requests with OpenTelemetry's tracing, its daemon, and the protocol's own reader of what the daemon sends."""

    def setUp(self) -> None:
        self.receiver = self.enterContext(own.Receiver())
        self.folder = self.enterContext(Folder(f"otlp: {{endpoint: 'http://127.0.0.1:{self.receiver.port}', interval: 1s}}\n"))
        self.daemon = self.enterContext(self.folder.daemon())
        self.job = gpumeter.Run("served", path=self.folder.datagram, sigterm=False)
        self.addCleanup(self.job.stop)

    def points(self) -> list[ExponentialHistogramDataPoint]:
        """Of each export, in their order."""
        metrics = [metric for request in list(self.receiver.requests) for of in ExportMetricsServiceRequest.FromString(request[3]).resource_metrics
                   for scope in of.scope_metrics for metric in scope.metrics]
        return [point for metric in metrics for point in metric.exponential_histogram.data_points]

    def test_a_span_of_the_sdk_is_an_exemplar(self) -> None:
        tracer = TracerProvider().get_tracer("test")
        expected = set()
        for seconds in (0.03125, 0.75):
            with tracer.start_as_current_span("request") as span:
                self.job.inference(seconds)
            expected.add((seconds, span.get_span_context().trace_id, span.get_span_context().span_id))
            time.sleep(1.1)  # one a second
        self.job.stop()
        found = wait_until(lambda: (exemplars := {(each.as_double, int.from_bytes(each.trace_id, "big"), int.from_bytes(each.span_id, "big"))
                                                  for point in self.points() for each in point.exemplars}) >= expected and exemplars, "the exemplars")
        self.assertEqual(found, expected)

    def test_an_exponential_histogram_has_the_buckets_of_the_page(self) -> None:
        source = random.Random(5)
        for _ in range(250):
            self.job.inference(source.lognormvariate(-2, 1.5))
        self.job.stop()
        point = wait_until(lambda: next((each for each in self.points() if each.count == 250), None), "the durations")
        self.assertEqual((point.scale, len(point.negative.bucket_counts)), (3, 0))
        buckets = self.daemon.page().of("ml_inference_duration_seconds_bucket", run="served")
        self.assertGreater(len(buckets), 100)
        for (_, labels), value in buckets.items():
            bound = float(dict(labels)["le"])
            last = round(8 * math.log2(bound)) - point.positive.offset if bound < math.inf else len(point.positive.bucket_counts)
            self.assertEqual(point.zero_count + sum(point.positive.bucket_counts[:max(0, last)]), value, labels)


if __name__ == "__main__":
    unittest.main(verbosity=2)
