#!/usr/bin/env python3
"""`gpumeter profile` and a training loop of JAX 0.8.1 without TensorFlow, which a trace of its operators would stop for ever."""
import os
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

try:
    import jax
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
from harness import BINARY, free_port, wait_until  # noqa: E402
from profiled import Profiled  # noqa: E402

LOOP = """
import sys, time, jax, jax.numpy as np
jax.profiler.start_server(int(sys.argv[1]))
step = jax.jit(lambda x: np.tanh(x @ x))
x = np.ones((256, 256)) / 256
while True:
    x = step(x).block_until_ready()
    print(time.time(), file=open(sys.argv[2], "w"))
    time.sleep(0.005)
"""


class JaxWithoutTensorFlowTest(unittest.TestCase):
    def test_goes_on_after_a_profile(self) -> None:
        print(f"JAX {jax.__version__}")
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        port, beat, config = free_port(), folder / "beat", folder / "gpumeter.yaml"
        config.write_text(f'profiles: {{enabled: true, socket: {folder}/profiles.sock, folder: {folder}, profiler_ports: ["{port}"]}}\n')
        job = subprocess.Popen([sys.executable, "-c", LOOP, str(port), str(beat)], env={**os.environ, "JAX_PLATFORMS": "cpu"})
        self.addCleanup(job.wait)
        self.addCleanup(job.kill)
        wait_until(beat.exists, "the job makes steps")
        with Profiled(config) as daemon:
            wait_until(lambda: f"pid={job.pid} port={port} " in daemon.log, "the service is found")
            self.assertIn('trace="device only"', daemon.log)
            subprocess.run([BINARY, "profile", f"--config.file={config}", f"--pid={job.pid}", "--seconds=0.5"], capture_output=True, timeout=200)
        ended = time.time()
        wait_until(lambda: float(beat.read_text() or 0) > ended, "the job makes steps after the profile", 10)


if __name__ == "__main__":
    unittest.main(verbosity=2)
