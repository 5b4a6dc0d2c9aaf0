#!/usr/bin/env python3
"""The client of TensorFlow's and JAX's profiler service against a gRPC server of grpcio with the service's messages; and given jobs with
such a server, when `gpumeter profile` asks, then they write their traces, and nobody else's request reaches them."""
import os
import re
import subprocess
import sys
import tempfile
import threading
import unittest
from concurrent import futures
from pathlib import Path

from faulty import Faulty, missing
from harness import BINARY, free_port, wait_until
from profiled import Profiled
from profiler_messages import grpc, messages, serve

HERE = Path(__file__).resolve().parent
PROGRAM = os.environ.get("GPUMETER_PROFILER_SERVICE", str(HERE.parent.parent / "build/release/tests/profiler_service"))
STRANGER = 54321


def ask(port: int, milliseconds: int = 50) -> str:
    return subprocess.run([PROGRAM, str(port), str(milliseconds), "/logs", "gpumeter_1", "node"], capture_output=True, text=True,
                          timeout=30, check=True).stdout.strip()


class ProfilerServiceTest(unittest.TestCase):
    def setUp(self) -> None:
        self.requests: list = []
        self.answer = messages.ProfileResponse()
        self.refusal = None
        self.server, self.port = serve(self.profile, "127.0.0.1:0")
        self.addCleanup(lambda: self.server.stop(None).wait(10))

    def profile(self, request, context):
        self.requests.append(request)
        threading.Event().wait(request.opts.duration_ms / 1000)
        if self.refusal:
            context.abort(*self.refusal)
        return self.answer

    def test_asks_for_a_trace(self) -> None:
        self.assertEqual(ask(self.port), "/logs/plugins/profile/gpumeter_1/node.xplane.pb full")
        request, = self.requests
        self.assertEqual((request.duration_ms, request.opts.duration_ms, request.repository_root, request.session_id, request.host_name),
                         (50, 50, "/logs/plugins/profile", "gpumeter_1", "node"))
        self.assertEqual((request.opts.version, request.opts.host_tracer_level, request.opts.device_tracer_level,
                          request.opts.python_tracer_level, request.opts.enable_hlo_proto), (1, 2, 1, 0, True))

    def test_reports_an_empty_trace(self) -> None:
        self.answer.empty_trace = True
        self.answer.tool_data.add(name="x", data=b"y" * 100_000)
        self.assertEqual(ask(self.port), "/logs/plugins/profile/gpumeter_1/node.xplane.pb empty")

    def test_reports_refusals(self) -> None:
        self.refusal = (grpc.StatusCode.ALREADY_EXISTS, "Another profiling session active.")
        said = ask(self.port)
        self.assertTrue(said.startswith("failed refused: ") and "Another profiling session active." in said, said)
        self.server.stop(None).wait(10)
        self.assertEqual(ask(self.port), f"failed unavailable: port {self.port}: Connection refused")

    def test_limits_the_answer(self) -> None:
        self.answer.tool_data.add(name="x", data=bytes(2 << 20))
        self.assertTrue(ask(self.port).startswith("failed malformed: "))

    def test_finds_no_service_on_another_server(self) -> None:
        other = grpc.server(futures.ThreadPoolExecutor(1))
        port = other.add_insecure_port("127.0.0.1:0")
        other.start()
        self.addCleanup(lambda: other.stop(None).wait(10))
        self.assertTrue(ask(port).startswith("failed unimplemented: "))



class DaemonTest(unittest.TestCase):
    """`gpumeter profile` with jobs that serve the profiler service."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="gpumeter-profiler-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name).resolve()
        self.folder.chmod(0o1777)
        self.ports = [free_port() for _ in range(4)]
        self.config = self.folder / "gpumeter.yaml"
        self.config.write_text(f"""
jobs: {{socket: {self.folder}/jobs.sock, stream_socket: ""}}
profiles:
  enabled: true
  socket: {self.folder}/profiles.sock
  profiler_ports: {[str(port) for port in self.ports]}
  folder: {self.folder}
  conditions: [slow_steps]
  duration: 300ms
  hold: 10s
""".replace("'", '"'))

    def job(self, port: int, *arguments: str, user: int | None = None) -> subprocess.Popen:
        job = subprocess.Popen([sys.executable, "-B", str(HERE / "profiler_double.py"), str(port), *arguments], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True, user=user)
        self.addCleanup(job.communicate)
        self.assertEqual(job.stdout.readline(), "ready\n")
        return job

    def profile(self, *words: str, user: int | None = None) -> tuple[int, str, str]:
        done = subprocess.run([BINARY, "profile", f"--config.file={self.config}", *words], capture_output=True, text=True, timeout=60,
                              user=user)
        return done.returncode, done.stdout, done.stderr

    def test_requests(self) -> None:
        with Profiled(self.config) as daemon:
            wait_until(lambda: (self.folder / "jobs.sock").exists(), "the jobs' socket is there")
            report = ["--jobs", f"{self.folder}/jobs.sock"]
            ours = self.job(self.ports[0], "--run", "resnet", *report)
            busy = self.job(self.ports[1], "--refuse")
            for job, port in ((ours, self.ports[0]), (busy, self.ports[1])):
                wait_until(lambda: f'can be profiled" pid={job.pid} port={port} ' in daemon.log, "the service is found")
            wait_until(lambda: daemon.page().one("ml_steps_total", run="resnet"), "the run is known")

            with self.subTest("a run"):
                code, out, error = self.profile("--run=resnet", "--seconds=0.3")
                self.assertEqual((code, error), (0, ""), out)
                self.assertIn("accepted; the trace begins at once\n", out)
                found = re.search(rf"process {ours.pid}: (/\S+), \d+ bytes\n", out)
                self.assertRegex(found[1], rf"^{self.folder}/(gpumeter_resnet_[0-9a-f]+)/plugins/profile/\1/{ours.pid}.xplane.pb$")
                self.assertEqual(Path(found[1]).read_text(), "trace of 300 ms")
                counts = wait_until(lambda: daemon.page().of("ml_profiles_total", run="resnet", trigger="request", status="done"),
                                    "it is counted")
                self.assertEqual(list(counts.values()), [1])

            with self.subTest("steps"):
                code, out, error = self.profile("--run=resnet", "--steps=3")
                self.assertEqual((code, out), (1, ""))
                self.assertIn("counts no steps; ask for seconds", error)

            with self.subTest("a job that refuses"):
                code, out, error = self.profile(f"--pid={busy.pid}", "--seconds=0.1")
                self.assertEqual(code, 1)
                self.assertIn("Another profiling session active.", error)

            with self.subTest("two processes on one port"):
                self.job(self.ports[1])
                wait_until(lambda: f"port={self.ports[1]} error=\"several processes listen on it" in daemon.log, "the log names the port")
                self.assertIn("no process of yours", self.profile(f"--pid={busy.pid}")[2])

            with self.subTest("another user's job"):
                if os.getuid() != 0:
                    self.skipTest("only root can act as another user")
                theirs = self.job(self.ports[2], user=STRANGER)
                wait_until(lambda: f"pid={theirs.pid} port={self.ports[2]} uid={STRANGER}" in daemon.log, "the service is found")
                self.assertIn("no process of yours", self.profile(f"--pid={ours.pid}", user=STRANGER)[2])
                code, out, error = self.profile(f"--pid={theirs.pid}", "--seconds=0.1", user=STRANGER)
                self.assertEqual((code, error), (0, ""), out)
                trace = Path(re.search(r": (/\S+), \d+ bytes", out)[1])
                self.assertEqual((trace.stat().st_uid, trace.parents[3].stat().st_uid), (STRANGER, STRANGER))

            ours.kill()
            ours.wait()
            said = wait_until(lambda: "no process of yours" in (said := self.profile("--run=resnet"))[2] and said, "the job is gone")
            self.assertEqual(said[0], 1)
            self.assertEqual(daemon.stop()[0], 0)

    def test_a_condition(self) -> None:
        with Profiled(self.config) as daemon:
            wait_until(lambda: (self.folder / "jobs.sock").exists(), "the jobs' socket is there")
            job = self.job(self.ports[0], "--run", "slow", "--jobs", f"{self.folder}/jobs.sock", "--slow-after", "8")
            done = {"run": "slow", "trigger": "slow_steps", "status": "done"}
            wait_until(lambda: daemon.page().one("ml_profiles_total", **done), "the condition takes a profile")
            trace, = self.folder.glob(f"gpumeter_slow_*/plugins/profile/*/{job.pid}.xplane.pb")
            self.assertEqual(trace.read_text(), "trace of 300 ms")
            self.assertEqual(daemon.stop()[0], 0)

    @unittest.skipIf(missing(), missing())
    def test_nobody_waits_for_a_process_whose_files_in_proc_hang(self) -> None:
        proc = self.enterContext(Faulty())
        (proc.backing / "net").mkdir()
        rows = ""
        for number, port in ((10, self.ports[0]), (11, self.ports[1])):
            rows += f"   0: 0100007F:{port:04X} 00000000:0000 0A 00000000:00000000 00:00000000 00000000  7        0 {number}01 1\n"
            process = proc.backing / str(number)
            (process / "fd").mkdir(parents=True)
            (process / "fd/3").symlink_to(f"socket:[{number}01]")
            (process / "stat").write_text(f"{number} (x) S 1 1 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 5 0")
            (process / "status").write_text("Name:\tx\nUid:\t7\t7\t7\t7\n")
        (proc.backing / "net/tcp").write_text(rows)
        proc.fail("read:hang", "^/10/")
        daemon = self.enterContext(Profiled(self.config, f"--path.procfs={proc.root}", "--simulate=1"))
        self.addCleanup(proc.heal)
        wait_until(lambda: f'can be profiled" pid=11 port={self.ports[1]} ' in daemon.log, "the other process is found")
        wait_until(lambda: f'port={self.ports[0]} error="its process is not known' in daemon.log, "the log names the port")
        self.assertTrue(proc.hangs())
        self.assertEqual(daemon.page().one("gpu_up", gpu="0"), 1)
        self.assertEqual(daemon.fetch("/-/ready").status, 200)
        self.assertIn("no process of yours", self.profile("--pid=10")[2])
        proc.heal()
        wait_until(lambda: f'can be profiled" pid=10 port={self.ports[0]} ' in daemon.log, "the process is found once it answers")
        self.assertEqual(daemon.stop()[0], 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
