#!/usr/bin/env python3
"""Given processes on a simulated GPU that map NCCL of several versions and listen as its RAS does, then gpumeter-nccl asks those whose versions
are safe, never connects to the others, and the daemon's page has what they answer."""
from __future__ import annotations

import json
import os
import pwd
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

import at_once
from harness import ROOT, Daemon, Page, Program, free_port, wait_until
from jobs import value

RANK = ROOT / "tests/fakes/nccl/rank.py"
SAMPLE = (ROOT / "tests/fixtures/nccl/status_2.29.1.json").read_text()
USER = pwd.getpwuid(os.getuid()).pw_name
QUIET = 4  # seconds in which a program that asks would have asked


def answer() -> str:
    """NVIDIA's sample, with this machine's process in place of rank 0's, and operations."""
    job = json.loads(SAMPLE)
    first, missing = job["communicators"][0]["ranks"][0], job["communicators"][0]["missing_ranks"][0]
    first.update(host="127.0.0.1", collective_counts={"Broadcast": 3, "Reduce": 0, "AllGather": 4, "ReduceScatter": 5, "AllReduce": 600})
    first["pid"], missing["host"] = "%PID%", "192.0.2.9"
    return json.dumps(job, indent=2).replace('"%PID%"', "%PID%")


class Rank:
    """A process of tests/fakes/nccl/rank.py, and its lines."""

    def __init__(self, folder: Path, library: str, port: int, form: str = "json", content: bytes = b"\x7fELF"):
        path, document = folder / library, folder / "answer.json"
        path.write_bytes(content)
        document.write_text(answer())
        self.lines: list[str] = []
        self.process = subprocess.Popen([sys.executable, "-B", RANK, path, str(port), form, document], stdout=subprocess.PIPE, text=True)
        threading.Thread(target=self._read, daemon=True).start()
        wait_until(lambda: self.lines[:1], "the rank listens", 20)

    def _read(self) -> None:
        for line in self.process.stdout:
            self.lines.append(line.strip())

    def __enter__(self) -> "Rank":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def connections(self) -> int:
        return self.lines.count("connected")


class NcclTest(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="gpumeter-nccl-")))
        self.port = free_port()

    def rank(self, library: str, **named) -> Rank:
        return self.enterContext(Rank(self.folder, library, self.port, **named))

    def start(self, *ranks: Rank, **settings) -> None:
        """The daemon and the program."""
        off = {"enabled": False}
        users = [f"0={rank.process.pid},busy=0.5,memory=1GiB" for rank in ranks]
        path = self.folder / "gpumeter.yaml"
        pages = self.folder / "pages"
        path.write_text(json.dumps({"pages": {"folders": [str(pages)]}, "nccl": {"enabled": True, "port": self.port, **settings}, "jobs": {"enabled": False},
                                    "collectors": {"simulated": {"enabled": True, "devices": 1, "processes": users}, "nvidia": off, "amd": off}}))
        self.daemon = self.enterContext(Daemon(f"--config.file={path}"))
        self.program = self.enterContext(Program("gpumeter-nccl", self.daemon, path, pages=pages))

    def state(self, state: str) -> Page:
        return wait_until(lambda: (page := self.daemon.page()) and value(page, f'gpumeter_nccl_state{{user="{USER}",state="{state}"}}') and page,
                          f"the state is {state}\n{self.program.log}", 30)

    def test_asks_a_safe_version(self) -> None:
        rank = self.rank("libnccl.so.2.29.3")
        self.start(rank)
        page = self.state("asked")
        self.assertEqual(rank.lines[1:], ["connected", "asked SET FORMAT json", "asked STATUS"])
        found = {(name, tuple(value for key, value in labels if key not in ("run", "user"))): number for name in (
            "ml_nccl_ranks", "ml_nccl_collectives_total", "ml_nccl_rank_lag", "ml_nccl_stalled_rank")
            for (_, labels), number in page.of(name).items()}
        self.assertEqual({key[1][0]: number for key, number in found.items() if key[0] == "ml_nccl_ranks"},
                         {"ok": 1, "error": 0, "missing": 1, "dead": 0})
        self.assertEqual({key[1][0]: number for key, number in found.items() if key[0] == "ml_nccl_collectives_total"},
                         {"broadcast": 3, "reduce": 0, "all_gather": 4, "reduce_scatter": 5, "all_reduce": 600})
        stalled, = page.of("ml_nccl_stalled_rank")
        self.assertEqual({key: text for key, text in stalled[1] if key in ("rank", "host", "state")},
                         {"rank": "1", "host": "192.0.2.9", "state": "missing"})
        self.assertAlmostEqual(next(iter(page.of("ml_nccl_last_success_timestamp_seconds").values())), time.time(), delta=30)
        time.sleep(QUIET)
        self.assertEqual(rank.connections(), 1, "at most once in 30 s")

    def test_finds_the_version_of_a_wheel(self) -> None:
        rank = self.rank("libnccl.so.2", content=b"\x7fELF" + bytes(2_000_000) + b"NCCL version 2.30.7+cuda13.3\0")
        self.start(rank)
        self.state("asked")
        self.assertEqual(rank.connections(), 1)

    def test_never_connects_if_the_version_is_old(self) -> None:
        safe, old = self.rank("libnccl.so.2.30.7"), self.rank("libnccl.so.2.27.3", form="text")
        self.start(safe, old)
        page = self.state("old_version")
        time.sleep(QUIET)
        self.assertEqual((safe.connections(), old.connections()), (0, 0))
        self.assertEqual(page.of("ml_nccl_ranks"), {})
        said = [line for line in self.program.log.splitlines() if "NCCL is not asked" in line]
        self.assertEqual(len(said), 1)
        self.assertIn(f"process {old.process.pid} has NCCL 2.27.3", said[0])

    def test_never_connects_to_an_unknown_process(self) -> None:
        known, other = self.rank("libnccl.so.2.30.7"), self.rank("libnccl.so.2.29.3")
        self.start(known)
        self.state("unknown_version")
        time.sleep(QUIET)
        self.assertEqual((known.connections(), other.connections()), (0, 0))

    def test_never_connects_by_default(self) -> None:
        rank = self.rank("libnccl.so.2.30.7")
        self.start(rank, enabled=False)
        self.assertEqual(self.program.process.wait(30), 0)
        self.assertIn("the configuration does not enable it", self.program.log)
        wait_until(lambda: self.daemon.page().of("gpu_workload_share_ratio"), "the process is on the GPU", 30)
        time.sleep(QUIET)
        self.assertEqual(rank.connections(), 0)
        self.assertEqual(self.daemon.page().of("gpumeter_nccl_state"), {})

    def test_survives_torn_and_silent_answers(self) -> None:
        for form, error in (("torn", "no complete JSON document"), ("text", "no JSON: ERROR: Unknown command SET FORMAT json")):
            with self.subTest(form), Rank(self.folder, "libnccl.so.2.29.3", self.port, form) as rank:
                self.start(rank)
                page = self.state("failed")
                self.assertIn(error, self.program.log)
                self.assertEqual(page.of("ml_nccl_ranks"), {})
                self.program.stop()
                self.daemon.__exit__()
        with Rank(self.folder, "libnccl.so.2.29.3", self.port, "silent") as rank:
            self.start(rank)
            wait_until(rank.connections, "the program asks", 30)
            before = time.monotonic()
            self.assertEqual(self.program.stop(), 0)
            self.assertLess(time.monotonic() - before, 5)

    def test_its_page_ends_with_it_and_outlives_the_daemon(self) -> None:
        rank = self.rank("libnccl.so.2.29.3")
        self.start(rank)
        self.state("asked")
        self.daemon.stop()
        wait_until(lambda: "the daemon does not answer" in self.program.log, "it goes on without the daemon", 30)
        self.assertNotEqual(self.program.page().of("ml_nccl_ranks"), {})
        self.assertEqual(self.program.stop(), 0)
        self.assertFalse(self.program.file.exists())


if __name__ == "__main__":
    at_once.main()
