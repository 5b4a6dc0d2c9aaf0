#!/usr/bin/env python3
"""Given jobs with PyTorch's debug server, when `gpumeter profile` asks, then it writes their traces for their user, and a trace that is not
complete leaves no file."""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from harness import BINARY, free_port, wait_until
from profiled import Profiled

DOUBLE = Path(__file__).with_name("debug_server_double.py")
STRANGER = 54321


class DebugServerTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="gpumeter-debug-server-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name).resolve()
        self.folder.chmod(0o1777)
        self.ports = [free_port() for _ in range(6)]
        self.config = self.folder / "gpumeter.yaml"
        self.config.write_text(f"""
jobs: {{socket: {self.folder}/jobs.sock, stream_socket: ""}}
profiles:
  enabled: true
  socket: {self.folder}/profiles.sock
  profiler_ports: {json.dumps([str(port) for port in self.ports])}
  worker_sockets: ["{self.folder}/worker-*.sock"]
  folder: {self.folder}
  trace_folder: {self.folder}/cache/traces
  conditions: [slow_steps]
  duration: 300ms
  hold: 10s
""")

    def job(self, place: int | str, *arguments: str, user: int | None = None) -> subprocess.Popen:
        job = subprocess.Popen([sys.executable, "-B", str(DOUBLE), str(place), *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               text=True, user=user)
        self.addCleanup(job.communicate)
        self.assertEqual(job.stdout.readline(), "ready\n")
        kind = "port" if isinstance(place, int) else "socket"
        wait_until(lambda: f'can be profiled" pid={job.pid} {kind}={place} ' in self.daemon.log, "the server is found")
        return job

    def profile(self, *words: str, user: int | None = None) -> tuple[int, str, str]:
        done = subprocess.run([BINARY, "profile", f"--config.file={self.config}", *words], capture_output=True, text=True, timeout=60,
                              user=user)
        return done.returncode, done.stdout, done.stderr

    def assert_no_trace(self, error: str, pid: int) -> None:
        code, _, said = self.profile(f"--pid={pid}", "--seconds=0.1")
        self.assertEqual(code, 1)
        self.assertIn(error, said)
        self.assertEqual(list(self.folder.glob(f"*_{pid}.json")), [])

    def test_requests(self) -> None:
        with Profiled(self.config) as self.daemon:
            wait_until(lambda: (self.folder / "jobs.sock").exists(), "the jobs' socket is there")
            report = ["--run", "bert", "--jobs", f"{self.folder}/jobs.sock"]
            ranks = [self.job(port, *report) for port in self.ports[:2]]
            wait_until(lambda: self.daemon.page().one("ml_steps_total", run="bert"), "the run is known")

            with self.subTest("a run of two processes"):
                code, out, error = self.profile("--run=bert", "--seconds=0.3")
                self.assertEqual((code, error), (0, ""), out)
                for rank in ranks:
                    trace = Path(re.search(rf"process {rank.pid}: (/\S+), \d+ bytes\n", out)[1])
                    self.assertEqual(json.loads(trace.read_text())["traceEvents"][0]["dur"], 0.3)
                counts = wait_until(lambda: self.daemon.page().of("ml_profiles_total", run="bert", status="done"), "it is counted")
                self.assertEqual(list(counts.values()), [1])

            with self.subTest("steps"):
                self.assertIn("counts no steps; ask for seconds", self.profile("--run=bert", "--steps=3")[2])

            with self.subTest("a trace that is cut, and none"):
                self.assert_no_trace("within the trace", self.job(self.ports[2], "--answer", "cut").pid)
                self.assert_no_trace("HTTP status 500: Handler torch_profile failed: RuntimeError", self.job(self.ports[3], "--answer", "error").pid)

            with self.subTest("another program's server gets no POST"):
                self.assert_no_trace(f"port {self.ports[4]}: ", self.job(self.ports[4], "--unnamed").pid)

            with self.subTest("another user's job"):
                if os.getuid() != 0:
                    self.skipTest("only root can act as another user")
                theirs = self.job(self.ports[5], user=STRANGER)
                self.assertIn("no process of yours", self.profile(f"--pid={ranks[0].pid}", user=STRANGER)[2])
                for user in (STRANGER, None):  # root's trace belongs to root, as the folder does
                    code, out, error = self.profile(f"--pid={theirs.pid}", "--seconds=0.1", user=user)
                    self.assertEqual((code, error), (0, ""), out)
                    trace = Path(re.search(r": (/\S+), \d+ bytes", out)[1])
                    self.assertEqual((trace.stat().st_uid, trace.stat().st_mode & 0o777), (user or 0, 0o600))

            with self.subTest("Unix sockets"):
                local = self.job(f"{self.folder}/worker-0.sock", "--run", "local", *report[2:])
                wait_until(lambda: self.daemon.page().one("ml_steps_total", run="local"), "the run is known")
                code, out, error = self.profile("--run=local", "--seconds=0.3")
                self.assertEqual((code, error), (0, ""), out)
                trace = Path(re.search(rf"process {local.pid}: (/\S+), \d+ bytes\n", out)[1])
                self.assertEqual(json.loads(trace.read_text())["traceEvents"][0]["dur"], 0.3)
                if os.getuid() == 0:  # only a job's own user may connect to such a socket
                    theirs = self.job(f"{self.folder}/worker-1.sock", user=STRANGER)
                    code, out, error = self.profile(f"--pid={theirs.pid}", "--seconds=0.1", user=STRANGER)
                    self.assertEqual((code, error), (0, ""), out)
                    self.assertEqual(Path(re.search(r": (/\S+), \d+ bytes", out)[1]).stat().st_uid, STRANGER)
            self.assertEqual(self.daemon.stop()[0], 0)

    def test_conditions(self) -> None:
        with Profiled(self.config) as self.daemon:
            wait_until(lambda: (self.folder / "jobs.sock").exists(), "the jobs' socket is there")
            report = ["--jobs", f"{self.folder}/jobs.sock", "--slow-after", "8", "--run"]
            user = STRANGER if os.getuid() == 0 else None
            jobs = {"port": self.job(self.ports[0], *report, "port", user=user),
                    "socket": self.job(f"{self.folder}/worker-0.sock", *report, "socket")}
            for run, job in jobs.items():
                with self.subTest(run):
                    done = {"run": run, "trigger": "slow_steps", "status": "done"}
                    wait_until(lambda: self.daemon.page().one("ml_profiles_total", **done), "the condition takes a profile")
                    trace, = (self.folder / "cache/traces").glob(f"gpumeter_{run}_*_{job.pid}.json")
                    self.assertEqual(json.loads(trace.read_text())["traceEvents"][0]["dur"], 0.3)
                    owner = Path(f"/proc/{job.pid}").stat().st_uid
                    self.assertEqual((trace.stat().st_uid, trace.stat().st_mode & 0o777), (owner, 0o600))
            self.assertEqual(self.daemon.stop()[0], 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
