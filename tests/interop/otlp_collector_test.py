#!/usr/bin/env python3
"""OpenTelemetry's own readers of what gpumeter sends: the Collector's receiver (go_collector) and the SDK's messages. Both read what the page has.
Requires Go (as go_tls) of the version in go_collector/go.mod, and the Go modules named there."""
from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "tests/e2e"), str(HERE)]
import otlp_test as own  # noqa: E402
from go_tls_test import GO  # noqa: E402
from harness import free_port, wait_until  # noqa: E402

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


if __name__ == "__main__":
    unittest.main(verbosity=2)
