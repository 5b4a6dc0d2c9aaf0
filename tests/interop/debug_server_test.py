#!/usr/bin/env python3
"""Given a real training loop of PyTorch with a debug server (torch.distributed.debug), when `gpumeter profile` asks, then its traces hold
the loop's operators, and the loop goes on."""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/e2e"))
from harness import BINARY, free_port, wait_until  # noqa: E402
from profiled import Profiled  # noqa: E402

try:
    import torch
    import torch.distributed.debug  # noqa: F401 - from PyTorch 2.10 on
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

OPERATORS = {"aten::linear", "aten::relu", "aten::addmm"}
HEAD = """
import contextlib, os, socket, sys, time, torch
import torch.distributed
torch.set_num_threads(1)
"""
ON_A_PORT = HEAD + """
torch.distributed.init_process_group("gloo")
from torch.distributed.debug import start_debug_server
start_debug_server(port=int(sys.argv[1]), worker_port=int(sys.argv[2]))
"""
ON_A_SOCKET = HEAD + """
import torch.distributed.debug
from torch.distributed.elastic.control_plane import worker_main
server = worker_main()
server.__enter__()
"""
LOOP = """
out = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
batch = torch.randn(64, 256)
print("ready", flush=True)
while True:
    optimizer.zero_grad()
    model(batch).square().mean().backward()
    optimizer.step()
    with contextlib.suppress(OSError):  # the daemon's queue is full
        out.sendto(b"ml.steps:1|c|#run:loop", os.environ["JOBS"])
    time.sleep(0.005)
"""


class DebugServerTest(unittest.TestCase):
    def test_profiles(self) -> None:
        folder = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="gpumeter-debug-"))).resolve()
        port, store, front = free_port(), free_port(), free_port()
        config = folder / "gpumeter.yaml"
        config.write_text(f"""
jobs: {{socket: {folder}/jobs.sock, stream_socket: ""}}
profiles: {{enabled: true, socket: {folder}/profiles.sock, folder: {folder}, profiler_ports: ["{port}"]}}
""")
        with Profiled(config) as daemon:
            wait_until((folder / "jobs.sock").exists, "the jobs' socket is there")
            loop = subprocess.Popen([sys.executable, "-c", ON_A_PORT + LOOP, str(front), str(port)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                    text=True, start_new_session=True,
                                    env={**os.environ, "JOBS": f"{folder}/jobs.sock", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(store),
                                         "RANK": "0", "WORLD_SIZE": "1"})
            self.addCleanup(lambda: (os.killpg(loop.pid, 9), loop.communicate()))  # the front end is a process of its own
            self.assertEqual(loop.stdout.readline(), "ready\n")
            print(f"PyTorch {torch.__version__}")
            wait_until(lambda: f'can be profiled" pid={loop.pid} port={port} ' in daemon.log, "the server is found")
            wait_until(lambda: daemon.page().one("ml_steps_total", run="loop"), "the run is known")
            self.profile_often(config)
            counts = wait_until(lambda: (of := daemon.page().of("ml_profiles_total", run="loop", trigger="request", status="done"))
                                and list(of.values()) == [3] and of, "they are counted")
            self.assertEqual(len(counts), 1)
            self.assertIsNone(loop.poll(), "the job lives")

    def test_a_unix_socket(self) -> None:
        folder = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="gpumeter-debug-"))).resolve()
        config, path = folder / "gpumeter.yaml", folder / "worker.sock"
        config.write_text(f"""
jobs: {{socket: {folder}/jobs.sock, stream_socket: ""}}
profiles: {{enabled: true, socket: {folder}/profiles.sock, folder: {folder}, worker_sockets: ["{folder}/*.sock"]}}
""")
        with Profiled(config) as daemon:
            wait_until((folder / "jobs.sock").exists, "the jobs' socket is there")
            loop = subprocess.Popen([sys.executable, "-c", ON_A_SOCKET + LOOP], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                    env={**os.environ, "JOBS": f"{folder}/jobs.sock", "TORCH_WORKER_SERVER_SOCKET": str(path)})
            self.addCleanup(lambda: (loop.kill(), loop.communicate()))
            self.assertEqual(loop.stdout.readline(), "ready\n")
            wait_until(lambda: f'can be profiled" pid={loop.pid} socket={path} ' in daemon.log, "the server is found")
            wait_until(lambda: daemon.page().one("ml_steps_total", run="loop"), "the run is known")
            self.profile_often(config)
            self.assertIsNone(loop.poll(), "the job lives")

    def profile_often(self, config: Path) -> None:
        # The first profile of a process may be empty but for its frame, while the profiler's library loads.
        self.profile(config, "--run=loop", "--seconds=0.5")
        for _ in range(2):
            path = self.profile(config, "--run=loop", "--seconds=1")
            names = [event.get("name") for event in json.loads(path.read_text())["traceEvents"]]
            self.assertLessEqual(OPERATORS, set(names), path)
            print(f"gpumeter profile --run loop: {path.stat().st_size} bytes, {names.count('aten::linear')} times aten::linear", flush=True)

    def profile(self, config: Path, *words: str) -> Path:
        done = subprocess.run([BINARY, "profile", f"--config.file={config}", *words], capture_output=True, text=True, timeout=200)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return Path(re.search(r": (/\S+\.json), \d+ bytes", done.stdout)[1])


if __name__ == "__main__":
    unittest.main(verbosity=2)
