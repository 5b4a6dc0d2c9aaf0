#!/usr/bin/env python3
"""The client of the profiler service, and `gpumeter profile`, against real JAX and TensorFlow training loops on the CPU: the trace that the
job writes opens and holds the loop's operators, also a second one, and the loop goes on."""
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

try:
    import jax
    from jax.profiler import ProfileData
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
from harness import BINARY, wait_until  # noqa: E402
from profiled import Profiled  # noqa: E402

PROGRAM = os.environ.get("GPUMETER_PROFILER_SERVICE", str(ROOT / "build/release/tests/profiler_service"))

REPORT = """
import contextlib, os, socket
out = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
def report():
    if "JOBS" in os.environ:
        with contextlib.suppress(OSError):  # the daemon's queue is full
            out.sendto(b"ml.steps:1|c|#run:loop", os.environ["JOBS"])
"""
JAX = REPORT + """
import sys, time, jax, jax.numpy as np
jax.profiler.start_server(int(sys.argv[1]))
@jax.jit
def train_step(w, x):
    return w - 0.01 * jax.grad(lambda w: np.mean((np.dot(x, w) - 1) ** 2))(w)
w, x = np.ones((256, 256)), np.ones((256, 256)) / 256
while True:
    w = train_step(w, x).block_until_ready()
    report()
    print(time.time(), flush=True)
    time.sleep(0.005)
"""
TENSORFLOW = REPORT + """
import sys, time, tensorflow as tf
tf.profiler.experimental.server.start(int(sys.argv[1]))
w, x = tf.Variable(tf.ones((256, 256))), tf.ones((256, 256)) / 256
@tf.function
def train_step():
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((tf.matmul(x, w) - 1) ** 2)
    w.assign_sub(0.01 * tape.gradient(loss, w))
while True:
    train_step()
    report()
    print(time.time(), flush=True)
    time.sleep(0.005)
"""


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def names_in(path: Path) -> set[str]:
    return {event.name for plane in ProfileData.from_file(str(path)).planes for line in plane.lines for event in line.events}


class ProfilerServiceTest(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.port = free_port()

    def ask(self, session: str, milliseconds: int) -> str:
        return subprocess.run([PROGRAM, str(self.port), str(milliseconds), str(self.folder), session, "node"], capture_output=True,
                              text=True, timeout=180, check=True).stdout.strip()

    def loop(self, program: str, **variables: str) -> subprocess.Popen:
        """The job after its first step."""
        job = subprocess.Popen([sys.executable, "-c", program, str(self.port)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                               text=True, env={**os.environ, "CUDA_VISIBLE_DEVICES": "", **variables})
        self.addCleanup(job.stdout.close)
        self.addCleanup(job.wait)
        self.addCleanup(job.kill)
        self.assertTrue(job.stdout.readline())
        return job

    def assert_operators(self, path: Path, operators: tuple[str, ...]) -> int:
        names = names_in(path)
        for operator in operators:
            self.assertTrue(any(operator in name for name in names), f"{operator} is not in {sorted(names)[:50]}")
        return len(names)

    def profile(self, *words: str) -> subprocess.CompletedProcess:
        return subprocess.run([BINARY, "profile", f"--config.file={self.folder}/gpumeter.yaml", *words], capture_output=True, text=True,
                              timeout=200)

    def by_command(self, program: str, operators: tuple[str, ...]) -> None:
        """`gpumeter profile --run loop`."""
        (self.folder / "gpumeter.yaml").write_text(f"""
jobs: {{socket: {self.folder}/jobs.sock, stream_socket: ""}}
profiles: {{enabled: true, socket: {self.folder}/profiles.sock, folder: {self.folder}, profiler_ports: ["{self.port}"]}}
""")
        with Profiled(self.folder / "gpumeter.yaml") as daemon:
            wait_until((self.folder / "jobs.sock").exists, "the jobs' socket is there")
            job = self.loop(program, JOBS=f"{self.folder}/jobs.sock")
            reader = threading.Thread(target=lambda: [None for _ in job.stdout])  # a full pipe would stop the loop
            reader.start()
            wait_until(lambda: f'can be profiled" pid={job.pid} port={self.port} ' in daemon.log, "the service is found")
            wait_until(lambda: daemon.page().one("ml_steps_total", run="loop"), "the run is known")
            for _ in range(2):
                done = self.profile("--run=loop", "--seconds=0.5")
                self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
                path = Path(re.search(r": (/\S+\.xplane\.pb), \d+ bytes", done.stdout)[1])
                count = self.assert_operators(path, operators)
                print(f"gpumeter profile --run loop: {path.stat().st_size} bytes, {count} names", flush=True)
            self.assertIn("counts no steps", self.profile("--run=loop", "--steps=2").stderr)
            counts = wait_until(lambda: (of := daemon.page().of("ml_profiles_total", run="loop", trigger="request", status="done"))
                                and list(of.values()) == [2] and of, "both are counted")
            self.assertEqual(len(counts), 1)
            self.assertIsNone(job.poll())
            job.kill()
            job.wait()
            reader.join()

    def trace(self, program: str, operators: tuple[str, ...]) -> None:
        job = self.loop(program)
        for session in ("gpumeter_1", "gpumeter_2"):
            began = time.monotonic()
            said = self.ask(session, 500)
            took = time.monotonic() - began
            path = self.folder / f"plugins/profile/{session}/node.xplane.pb"
            self.assertEqual(said, f"{path} full")
            count = self.assert_operators(path, operators)
            print(f"{session}: {path.stat().st_size} bytes, {count} names, {took:.2f} s for 0.5 s", flush=True)
        self.assertIsNone(job.poll())
        self.assertLess(time.time() - float(job.stdout.readline()), 300)
        job.kill()
        job.wait()
        self.by_command(program, operators)

    def test_jax(self) -> None:
        print(f"JAX {jax.__version__}")
        self.trace(JAX, ("dot", "train_step"))

    def test_tensorflow(self) -> None:
        said = subprocess.run([sys.executable, "-c", "import tensorflow; print(tensorflow.__version__)"], capture_output=True, text=True)
        if said.returncode != 0:
            self.skipTest(said.stderr.splitlines()[-1])
        print(f"TensorFlow {said.stdout.strip()}")
        self.trace(TENSORFLOW, ("MatMul",))


if __name__ == "__main__":
    unittest.main(verbosity=2)
