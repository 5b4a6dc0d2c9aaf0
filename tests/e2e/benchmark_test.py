#!/usr/bin/env python3
"""gpumeter-benchmark on a real OpenCL device, the processor by PoCL, for an idle GPU that a daemon over the fake NVML shows:
the results, a wrong result, and who makes it give way. ./dev bench compares its rates with those of clpeak."""
from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from contextlib import contextmanager, suppress
from pathlib import Path

from harness import BINARY, ROOT, Daemon, free_port, wait_until

PROGRAM = str(Path(BINARY).with_name("gpumeter-benchmark"))
LIBRARY = Path(os.environ.get("GPUMETER_FAKE_NVML", str(Path(BINARY).with_name("tests") / "fake_nvml/libnvidia-ml.so.1")))
UUID = "GPU-b1000000-0000-4000-8000-000000000000"
IDLE = """
include: a100.yaml
change:
  0:
    utilization: {{gpu: 0 %, memory: 0 %}}
    memory: {{total: 81920 MiB, reserved: 669 MiB, used: 1 MiB, free: 81250 MiB}}
    temperature: {{gpu: 31 C}}
    processes: {{compute: [{{pid: 4711, memory: 900 MiB, sm: 0, present: {present}}}], graphics: []}}
"""
FEW_RUNS = {"GPUMETER_BENCHMARK_SLICE": "20ms"}  # of each test, so that most of the time goes to the verification
FLOPS = ("flops", "fp32")
EXIT_OK, EXIT_FAILED, EXIT_GAVE_WAY, EXIT_NOT_MEASURED = 0, 1, 3, 4

if not any(Path("/etc/OpenCL/vendors").glob("pocl*")):
    print("skipped: PoCL is not installed (pocl-opencl-icd)")
    sys.exit(77)


class BenchmarkTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="gpumeter-test-")))
        cls.lock = cls.folder / "lock"
        (cls.folder / "a100.yaml").symlink_to(ROOT / "tests/fixtures/nvidia/a100.yaml")
        cls.env = {"LD_LIBRARY_PATH": str(LIBRARY.parent), "POCL_CACHE_DIR": str(cls.folder / "pocl"), "HOME": str(cls.folder)}
        cls.daemon = cls.enterClassContext(Daemon(env={**cls.env, "FAKE_NVML_SCENARIO": cls.scenario("idle", "no")}))
        wait_until(lambda: UUID in cls.daemon.fetch("/api/v1/live").text, "the GPU in the daemon's answers")

    @classmethod
    def scenario(cls, name: str, present: str) -> str:
        path = cls.folder / f"{name}.yaml"
        path.write_text(IDLE.format(present=present))
        return str(path)

    def start(self, *flags: str, scenario: str = "", port: int = 0, **env: str) -> subprocess.Popen[str]:
        """As for the GPU of the daemon, but computing on the processor."""
        arguments = ["--cpu", "--report-as", UUID, "--url", f"http://127.0.0.1:{port or self.daemon.port}", "--lock", str(self.lock), "--history",
                     str(self.folder), "--jobs-socket", str(self.folder / "jobs.sock"), "--json", *flags]
        variables = {**os.environ, **self.env, "FAKE_NVML_SCENARIO": scenario or str(self.folder / "idle.yaml"), **env}
        process = subprocess.Popen([PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=variables)
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        return process

    def end(self, process: subprocess.Popen[str], code: int) -> dict:
        out, errors = process.communicate(timeout=100)
        self.assertEqual(process.returncode, code, out + errors)
        return json.loads(out)["benchmarks"][0] if out else {"errors": errors}

    @contextmanager
    def receiver(self):
        """The socket of the daemon's jobs, in its place."""
        path = self.folder / "jobs.sock"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as jobs:
            jobs.bind(str(path))
            try:
                yield jobs
            finally:
                path.unlink()

    def measured(self, code: int, **env: str) -> tuple[dict, list[str]]:
        """The result, and the lines that the daemon's jobs get. On a busy machine the run may be stopped: the next one has the kernels
        that PoCL compiled for it."""
        for _ in range(4):
            with self.receiver() as jobs:
                process = self.start("--time", "12s", **FEW_RUNS, **env)
                out, errors = process.communicate(timeout=100)
                found, lines = json.loads(out)["benchmarks"][0], jobs.recv(65536).decode().splitlines()
            if found["reason"] != "it did not end in time":
                break
        self.assertEqual(process.returncode, code, out + errors)
        return found, lines

    def too_late(self, found: dict, test: str) -> None:
        """On a busy machine the time may end before the test."""
        self.assertIn("the time was over", " ".join(found["notes"]), f"{test}: {found}")

    def working_child(self, process: subprocess.Popen[str]) -> None:
        """Waits until the process that computes has PoCL's kernels."""
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")

        def has_opencl() -> bool:
            with suppress(FileNotFoundError):  # one has just ended
                return any("libpocl" in Path(f"/proc/{pid}/maps").read_text() for pid in children.read_text().split())
            return False
        wait_until(has_opencl, "the process that computes")

    def test_results(self) -> None:
        found, lines = self.measured(EXIT_OK)
        self.assertEqual((found["uuid"], found["status"], found["failures"]), (UUID, "ok", []))
        results = {(each["quantity"], each["kind"]): each["value"] for each in found["results"]}
        for wanted in (FLOPS, ("memory_bandwidth", "read"), ("memory_bandwidth", "write"), ("memory_bandwidth", "copy"),
                       ("memory_bandwidth", "triad"), ("transfer", "host_to_device"), ("transfer", "device_to_host")):
            if wanted in results:
                self.assertGreater(results[wanted], 1e6, wanted)
            else:
                self.too_late(found, " ".join(wanted))
        if FLOPS in results:
            self.assertIn(f"gpu.benchmark.flops:{results[FLOPS]:.6g}|g|#uuid:{UUID},dtype:fp32,backend:opencl", lines)
        self.assertIn(f"gpu.benchmark.failed:0|g|#uuid:{UUID}", lines)
        self.assertEqual(len(lines), len(results) + 2)
        kept = json.loads((self.folder / f"{UUID}.json").read_text())
        self.assertEqual(kept["runs"][-1]["results"], found["results"])
        self.assertEqual(found["driver_version"], "550.54.15")

    def test_wrong_results_fail(self) -> None:
        found, lines = self.measured(EXIT_FAILED, GPUMETER_BENCHMARK_FAULT="gemm,memory,transfer")
        self.assertEqual(found["status"], "failed")
        for test in ("gemm fp32", "memory read", "memory write", "memory copy", "memory triad", "transfer device_to_host"):
            if not any(failure.startswith(test + ": ") for failure in found["failures"]):
                self.too_late(found, test)
        self.assertEqual([line.split("|")[0] for line in lines][0], "gpu.benchmark.failed:1")
        self.assertEqual(len(lines), 2, "no rates of a device that computes wrong results")

    def gave_way(self, process: subprocess.Popen[str], reason: str) -> None:
        began = time.monotonic()
        found = self.end(process, EXIT_GAVE_WAY)
        print(f"\n{reason}: ended {time.monotonic() - began:.2f} s later")
        self.assertEqual((found["status"], found["results"], found["failures"]), ("preempted", [], []))
        self.assertIn(reason, found["reason"])
        self.assertFalse((self.folder / "jobs.sock").exists())

    def test_gives_way_to_whoever_wants_the_lock(self) -> None:
        running = self.start()
        self.working_child(running)
        with subprocess.Popen(["flock", str(self.lock), "true"]) as wanting:
            self.gave_way(running, "another process opened")
        self.assertEqual(wanting.returncode, 0)

    def test_gives_way_to_a_process_on_the_gpu(self) -> None:
        # Long after it has looked whether the GPU is idle, also on a busy machine.
        self.gave_way(self.start(scenario=self.scenario("soon", "{steps: [[0, no], [5, yes]]}")), "process 4711 uses the GPU")

    def test_gives_way_to_a_signal(self) -> None:
        running = self.start()
        self.working_child(running)
        running.send_signal(signal.SIGTERM)
        self.gave_way(running, "a signal asked it to stop")

    def test_a_gpu_in_use_is_not_measured(self) -> None:
        found = self.end(self.start(scenario=self.scenario("busy", "yes")), EXIT_NOT_MEASURED)
        self.assertEqual((found["status"], found["reason"], found["results"]), ("not_measured", "process 4711 uses the GPU", []))

    def test_without_a_daemon_nothing_is_measured(self) -> None:
        found = self.end(self.start(port=free_port()), EXIT_FAILED)
        self.assertIn("no daemon listens there", found["errors"])

    def test_a_kept_lock_is_respected(self) -> None:
        with self.lock.open("w") as kept:
            fcntl.flock(kept, fcntl.LOCK_EX)
            found = self.end(self.start(), EXIT_NOT_MEASURED)
        self.assertIn("another process holds the lock", found["errors"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
