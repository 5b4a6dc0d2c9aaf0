#!/usr/bin/env python3
"""From a hot GPU to a message, with the shipped rules, intervals and Alertmanager's example in Debian's Prometheus and Alertmanager.

GPU 0 is throttled by heat without a break; GPUs 2 to 4 stay well, so that GpuManyHot does not take the place of the alerts. With DRILL_SLOW=1
GPU 1 is throttled for 3 of 15 s, which is the slow alert's case and takes 12 minutes. Prints the seconds from the fault to the message, which
depend on the phase of scrapes.
"""
import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
from harness import Daemon, free_port, wait_until  # noqa: E402

SHIPPED = ROOT / "packaging/prometheus"
SLOW = os.environ.get("DRILL_SLOW") == "1"
PROGRAMS = ("prometheus", "prometheus-alertmanager")
FAULT = 60  # s after the daemon's start: Prometheus knows the cool cards by then
FAST_PATIENCE, SLOW_PATIENCE = 240, 1000  # generous, for a busy machine
CREEPING = [f"--simulate-event=overheat 1 after {at}s for 3s" for at in range(FAULT, FAULT + SLOW_PATIENCE, 15)]
Message = tuple[str, str]  # alert, GPU


class Receiver(http.server.ThreadingHTTPServer):
    """The operators' webhook: when each alert's first message arrived."""

    def __init__(self) -> None:
        received: dict[Message, float] = {}
        self.received = received

        class Answer(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                for alert in body["alerts"]:
                    if alert["status"] == "firing":
                        received.setdefault((alert["labels"]["alertname"], alert["labels"].get("gpu", "")), time.monotonic())
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        super().__init__(("localhost", 0), Answer)
        threading.Thread(target=self.serve_forever, daemon=True).start()


@unittest.skipUnless(all(map(shutil.which, PROGRAMS)), f"needs {', '.join(PROGRAMS)}")
class ThermalDrillTest(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="gpumeter-test-")))
        self.receiver = self.enterContext(Receiver())
        self.addCleanup(self.receiver.shutdown)
        events = [f"--simulate-event=overheat 0 after {FAULT}s", *(CREEPING if SLOW else [])]
        self.daemon = self.enterContext(Daemon("--simulate=5", *events, detail=None))
        self.ports = {10478: self.daemon.port, 9090: free_port(), 9093: free_port(), 9095: self.receiver.server_port}
        self.start("prometheus-alertmanager", 9093, "alertmanager.yml", "--storage.path", "--cluster.listen-address=")
        self.start("prometheus", 9090, "prometheus.yml", "--storage.tsdb.path")

    def start(self, program: str, port: int, config: str, storage: str, *more: str) -> None:
        text = (SHIPPED / "examples" / config).read_text().replace("/etc/prometheus/gpumeter/*.yml", f"{SHIPPED}/*.yml")
        ours = re.sub(r"localhost:(\d+)", lambda found: f"localhost:{self.ports[int(found[1])]}", text)
        (self.folder / config).write_text(ours)
        with (self.folder / f"{program}.log").open("wb") as log:
            server = subprocess.Popen([program, f"--config.file={self.folder / config}", f"{storage}={self.folder / program}",
                                       f"--web.listen-address=localhost:{self.ports[port]}", *more], stdout=log, stderr=log)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)

    def message(self, alert: str, gpu: str, patience: int) -> None:
        at = wait_until(lambda: self.receiver.received.get((alert, gpu)), f"a message {alert} of GPU {gpu}", patience, every=0.5)
        print(f"{alert} of GPU {gpu}: {at - self.daemon.started - FAULT:.0f} s from the fault to the message", flush=True)

    def test_a_hot_gpu_is_told_at_both_speeds(self) -> None:
        self.message("GpuOverheating", "0", FAULT + FAST_PATIENCE)
        self.assertNotIn(("GpuThermalThrottling", "0"), self.receiver.received, "the slow alert was the faster one")
        if SLOW:
            self.message("GpuThermalThrottling", "1", SLOW_PATIENCE)
            self.assertNotIn(("GpuOverheating", "1"), self.receiver.received, "the creeping case is the slow alert's")
        self.assertEqual({gpu for _, gpu in self.receiver.received} & {"2", "3", "4"}, set(), "GPUs that are well")


if __name__ == "__main__":
    if not all(map(shutil.which, PROGRAMS)):
        print(f"skipped: needs {', '.join(PROGRAMS)}")
        sys.exit(77)
    unittest.main(verbosity=2)
