#!/usr/bin/env python3
"""Profiling counters of an A100 by DCGM's library (collectors.nvidia.dcgm), over the fake NVML and tests/fakes/dcgm."""
import os
import signal
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "fakes/nvml"))
from harness import BINARY, Daemon, Page, wait_until  # noqa: E402
from machine import SCENARIOS, Machine  # noqa: E402

LIBRARIES = os.environ.get("GPUMETER_FAKE_DCGM", str(Path(BINARY).parent / "tests/fake_dcgm"))
UUID = "GPU-b1000000-0000-4000-8000-000000000000"
# Family and its own label: the value of the fake's field.
VALUES = {
    "gpu_engine_utilization_ratio engine=graphics": 0.01, "gpu_compute_active_ratio": 0.02,
    "gpu_compute_occupancy_ratio": 0.03, "gpu_pipe_active_ratio pipe=tensor": 0.04, "gpu_memory_bandwidth_utilization_ratio": 0.05,
    "gpu_pipe_active_ratio pipe=fp64": 0.06, "gpu_pipe_active_ratio pipe=fp32": 0.07, "gpu_pipe_active_ratio pipe=fp16": 0.08,
    "gpu_tensor_active_ratio kind=int": 0.13, "gpu_tensor_active_ratio kind=fp16": 0.14, "gpu_tensor_active_ratio kind=fp64": 0.15}
COUNTER = "gpu_compute_active_seconds_total"


def profiled(page: Page) -> dict[str, float]:
    """The series that this A100 has by DCGM only."""
    found = {}
    for (name, labels), value in page.items():
        own = [f"{key}={text}" for key, text in labels if key in ("engine", "pipe", "kind")]
        key = " ".join([name, *own])
        if key in VALUES:
            found[key] = value
    return found


class DcgmEngineTest(unittest.TestCase):
    maxDiff = None

    def tell(self, words: str) -> None:
        new = self.engine.with_suffix(".new")
        new.write_text(f"{UUID} {words}")
        new.rename(self.engine)

    def is_absent(self, daemon: Daemon) -> bool:
        """What NVML reports is there."""
        page = daemon.page()
        return page.one("gpu_power_watts") == 287 and profiled(page) == {} and page.one(COUNTER) is None

    def has_all(self, daemon: Daemon) -> bool:
        return profiled(daemon.page()) == VALUES

    def test_an_engine(self):
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.engine = folder / "engine"
        self.tell("down")
        machine = self.enterContext(Machine(SCENARIOS / "a100.yaml", dcgm='"on"'))
        env = {**machine.env, "LD_LIBRARY_PATH": LIBRARIES, "FAKE_DCGM": str(self.engine)}
        with Daemon(*machine.arguments, f"--path.procfs={machine.procfs}", env=env) as daemon:
            wait_until(lambda: "collectors.nvidia.dcgm: no host engine (nv-hostengine) answers at 127.0.0.1" in daemon.log, "the log")
            self.assertTrue(self.is_absent(daemon))

            self.tell("")
            wait_until(lambda: self.has_all(daemon), "values, once the engine runs")
            self.assertEqual(daemon.page().one("gpu_meter_source_info", quantity="compute_active"), 1)

            self.tell("paused")
            wait_until(lambda: self.is_absent(daemon), "no values while profiling is paused")
            self.tell("")
            wait_until(lambda: self.has_all(daemon), "values after the resume")
            before = daemon.page().one(COUNTER)

            self.tell("hang")
            wait_until(lambda: self.is_absent(daemon), "no values while the library hangs")
            begun = time.monotonic()
            daemon.page()
            self.assertLess(time.monotonic() - begun, 1)
            self.tell("")
            wait_until(lambda: self.has_all(daemon), "values after the hang")
            self.assertGreaterEqual(daemon.page().one(COUNTER), before)

            # `dcgm: off` and a reload give the counters to a job's profiler.
            machine.configure(dcgm='"off"')
            daemon.send(signal.SIGHUP)
            said = self.engine.with_suffix(".log")
            wait_until(lambda: said.read_text().endswith("disconnect\n"), "the end of the connection")
            wait_until(lambda: self.is_absent(daemon), "no values without DCGM")
            self.assertEqual(daemon.log.count("collectors.nvidia.dcgm"), 1)

    def test_without_the_library(self):
        machine = self.enterContext(Machine(SCENARIOS / "a100.yaml", dcgm='"on"'))
        with Daemon(*machine.arguments, f"--path.procfs={machine.procfs}", env=machine.env) as daemon:
            wait_until(lambda: "collectors.nvidia.dcgm: libdcgm.so.4: cannot open shared object file" in daemon.log, "the log")
            self.assertTrue(self.is_absent(daemon))


if __name__ == "__main__":
    unittest.main(verbosity=2)
