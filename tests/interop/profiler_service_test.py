#!/usr/bin/env python3
"""The client of the profiler service against real JAX and TensorFlow training loops on the CPU: the trace that the job writes opens and holds
the loop's operators, also a second one, and the loop goes on."""
import os
import socket
import subprocess
import sys
import tempfile
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
PROGRAM = os.environ.get("GPUMETER_PROFILER_SERVICE", str(ROOT / "build/release/tests/profiler_service"))

JAX = """
import sys, time, jax, jax.numpy as np
jax.profiler.start_server(int(sys.argv[1]))
@jax.jit
def train_step(w, x):
    return w - 0.01 * jax.grad(lambda w: np.mean((np.dot(x, w) - 1) ** 2))(w)
w, x = np.ones((256, 256)), np.ones((256, 256)) / 256
while True:
    w = train_step(w, x).block_until_ready()
    print(time.time(), flush=True)
    time.sleep(0.005)
"""
TENSORFLOW = """
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

    def trace(self, program: str, operators: tuple[str, ...]) -> None:
        job = subprocess.Popen([sys.executable, "-c", program, str(self.port)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                               text=True, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})
        self.addCleanup(job.stdout.close)
        self.addCleanup(job.wait)
        self.addCleanup(job.kill)
        job.stdout.readline()  # the first step
        for session in ("gpumeter_1", "gpumeter_2"):
            began = time.monotonic()
            said = self.ask(session, 500)
            took = time.monotonic() - began
            path = self.folder / f"plugins/profile/{session}/node.xplane.pb"
            self.assertEqual(said, f"{path} full")
            names = names_in(path)
            print(f"{session}: {path.stat().st_size} bytes, {len(names)} names, {took:.2f} s for 0.5 s", flush=True)
            for operator in operators:
                self.assertTrue(any(operator in name for name in names), f"{operator} is not in {sorted(names)[:50]}")
        self.assertIsNone(job.poll())
        self.assertLess(time.time() - float(job.stdout.readline()), 300)

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
