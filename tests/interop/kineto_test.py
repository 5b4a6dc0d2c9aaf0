#!/usr/bin/env python3
"""Given a real training loop of PyTorch with KINETO_USE_DAEMON=1, when `gpumeter profile` or a condition asks, then its trace holds
the loop's operators; a daemon that waits costs the loop nothing that can be measured."""
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/e2e"))
from harness import BINARY, wait_until  # noqa: E402
from profiled import Profiled  # noqa: E402

LOOP = Path(__file__).with_name("kineto_loop.py")
OPERATORS = {"aten::linear", "aten::relu", "aten::addmm"}
SECONDS = float(os.environ.get("KINETO_LOOP_SECONDS", "20"))  # of each of the loops that are compared


class KinetoTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="gpumeter-kineto-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name).resolve()
        self.config = self.folder / "gpumeter.yaml"
        self.config.write_text(f"""
jobs: {{socket: {self.folder}/jobs.sock, stream_socket: ""}}
profiles:
  enabled: true
  socket: {self.folder}/profiles.sock
  kineto_folder: {self.folder}/kineto
  folder: {self.folder}
  conditions: [slow_steps]
  duration: 2s
  hold: 10s
""")

    def daemon(self) -> Profiled:
        return Profiled(self.config)

    def loop(self, *arguments: str, **variables: str) -> subprocess.Popen:
        """The socket's folder is one of this test's, so that another daemon of the machine is not asked."""
        environment = {**os.environ, "KINETO_USE_DAEMON": "1", "KINETO_IPC_SOCKET_DIR": f"{self.folder}/kineto",
                       "KINETO_ONDEMAND_TRACE_DIR": f"{self.folder}/", **variables}
        process = subprocess.Popen([sys.executable, str(LOOP), *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                   env={key: value for key, value in environment.items() if value})
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process

    def profile(self, *words: str) -> subprocess.CompletedProcess:
        return subprocess.run([BINARY, "profile", f"--config.file={self.config}", *words], capture_output=True, text=True, timeout=200)

    def assert_trace(self, path: str) -> None:
        events = json.loads(Path(path).read_text())["traceEvents"]
        self.assertLessEqual(OPERATORS, {event.get("name") for event in events}, path)

    def assert_profiled(self, *words: str) -> None:
        done = wait_until(lambda: (said := self.profile(*words)).returncode == 0 and said, f"a profile by {words}", 100, 1)
        path = re.search(r": (/\S+\.json), \d+ bytes", done.stdout)
        self.assertTrue(path, done.stdout)
        self.assert_trace(path[1])

    def test_profiles(self) -> None:
        with self.daemon() as daemon:
            loop = self.loop("600", "40", JOBS=f"{self.folder}/jobs.sock")
            self.assert_profiled("--run=loop", "--seconds=2")
            self.assert_profiled("--run=loop", "--steps=3")
            self.assert_profiled(f"--pid={loop.pid}", "--seconds=1", f"--output={self.folder}")
            wait_until(lambda: daemon.page().one("ml_profiles_total", run="loop", trigger="slow_steps", status="done"),
                       "the slow steps are profiled", 150, 1)
            reason = re.search(r'profiled" run=loop .*trigger=slow_steps reason="([^"]*)" status=done seconds=\S+ files=(\S+)', daemon.log)
            print(f"by condition: {reason[1]}")
            self.assert_trace(reason[2])
            daemon.process.kill()
            daemon.process.wait()
            time.sleep(6)  # a poll without a daemon
            with self.daemon():
                self.assert_profiled(f"--pid={loop.pid}", "--seconds=1")
            self.assertIsNone(loop.poll(), "the job lives")

    def test_cost(self) -> None:
        """ABBA: A without the variable, B with a daemon that waits. The polling thread's own processor time is the sharper figure: the
        steps' differ by more from loop to loop."""
        def measure(**variables: str) -> tuple[float, float]:
            out = self.loop(str(SECONDS), **variables).stdout.readline().split()
            steps, worked, others, elapsed = (float(word) for word in out)
            return worked / steps, others / elapsed

        without = {"KINETO_USE_DAEMON": "", "KINETO_IPC_SOCKET_DIR": ""}
        with self.daemon() as daemon:
            wait_until(lambda: f"{self.folder}/kineto/dynolog" in daemon.log, "the folder is served")
            a1, b1, b2, a2 = measure(**without), measure(), measure(), measure(**without)
        slower = (b1[0] + b2[0]) / (a1[0] + a2[0]) - 1
        polling = (b1[1] + b2[1] - a1[1] - a2[1]) / 2
        print(f"ABBA: a step takes {slower:+.3%} processor time with the daemon; the threads of PyTorch that poll take {polling:.5%} of a core")
        self.assertLess(polling, 0.001)


if __name__ == "__main__":
    unittest.main()
