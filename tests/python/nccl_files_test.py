#!/usr/bin/env python3
"""Given files of both sources and the daemon's processes, when gpumeter-nccl-files runs, then one page of all, which ends with it."""
from __future__ import annotations

import contextlib
import http.server
import json
import os
import resource
import signal
import socketserver
import subprocess
import tempfile
import threading
import time
import unittest
from pathlib import Path
from typing import Any

from nccl_bench import ALL_REDUCE, CLIENT, GPU, LINE, NAME, ON_GPU, RANK_0, RANK_1, RANK_2, row
from gpumeter_nccl_files import page

SERIES = json.dumps({"series": [{"name": "gpu_up", "labels": {"gpu": "0", "uuid": GPU}, "value": 1}]}).encode()


class PagesTest(unittest.TestCase):
    def test_many_series_are_several_pages(self) -> None:
        """The daemon refuses a page with more than 2000 series or a mebibyte."""
        for length, count in ((10, 2), (2000, 7)):
            whole = page.Page()
            for at in range(3000):
                whole.add("ml_nccl_dump_timestamp_seconds", at, {"run": "r" * length, "gpu": str(at)})
            whole.add("gpumeter_nccl_files", 3000, {"state": "read"})
            texts = whole.texts()
            self.assertGreaterEqual(len(texts), count)
            lines = [[line for line in text.splitlines() if not line.startswith("#")] for text in texts]
            self.assertEqual(sum(map(len, lines)), 3001)
            self.assertEqual(len({line for each in lines for line in each}), 3001)
            for text, rows in zip(texts, lines):
                self.assertTrue(text.startswith("# gpumeter: expires 300s\n# HELP "))
                self.assertTrue(0 < len(rows) <= 2000 and len(text.encode()) <= 1 << 20)
                self.assertEqual(text.count("# TYPE "), len({row.partition("{")[0] for row in rows}))


class Daemon(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """The daemon's API."""
    daemon_threads = True
    answer = b""


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        is_processes, is_series = self.path == "/api/v1/processes", self.path == "/api/v1/series?match[]=gpu_up&match[]=gpu_partition_info"
        self.send_response(200 if is_processes or is_series else 404)
        self.end_headers()
        with contextlib.suppress(BrokenPipeError):  # the program read enough
            self.wfile.write(SERIES if is_series else self.server.answer)  # type: ignore[attr-defined]

    def address_string(self) -> str:
        return "unix"

    def log_message(self, *_: object) -> None:
        pass


class ProgramTest(unittest.TestCase):
    def setUp(self) -> None:
        self.tree = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="gpumeter-nccl-files-")))
        (self.tree / "pages").mkdir()
        self.page = self.tree / "pages/nccl-files.prom"
        self.command = [CLIENT / "gpumeter-nccl-files", f"--flight-recorder={self.tree}/rank_", f"--api-socket={self.tree}/api.sock", f"--page={self.page}"]
        for rank, data in enumerate((RANK_0, RANK_1, RANK_2)):
            (self.tree / f"rank_{rank}").write_bytes(data)
            os.utime(self.tree / f"rank_{rank}", (time.time() - 5,) * 2)
        self.daemon = self.enterContext(Daemon(str(self.tree / "api.sock"), Handler))
        self.daemon.answer = json.dumps({"processes": [row(uid=os.getuid(), run="llama")]}).encode()
        thread = threading.Thread(target=self.daemon.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(self.daemon.shutdown)

    def run_once(self, *options: str, **limits: Any) -> subprocess.CompletedProcess:
        return subprocess.run([*self.command, "--once", *options], capture_output=True, text=True, timeout=60, env={"PATH": os.environ["PATH"]}, **limits)

    def test_a_page_of_the_daemons_processes(self) -> None:
        said = self.run_once()
        self.assertEqual((said.returncode, said.stdout, said.stderr), (0, "", ""))
        page = self.page.read_text()
        self.assertIn(f'ml_flight_recorder_collective{{run="llama",user="ann",prefix="{self.tree}/rank_",rank="2",group="0",'
                      'description="default_pg",state="enqueued"} 6\n', page)
        self.assertTrue(page.endswith('gpumeter_nccl_files{source="flight_recorder",state="read"} 3\n'))
        self.assertEqual(([path.name for path in self.page.parent.iterdir()], self.page.stat().st_mode & 0o777), ([self.page.name], 0o644))

    def test_a_page_of_both_sources(self) -> None:
        (self.tree / NAME).write_bytes(LINE + b"nccl_p2p_total{a=\"\\n<2>\"} -1\n")
        os.utime(self.tree / NAME, (time.time() - 5,) * 2)
        said = self.run_once(f"--inspector={self.tree}")
        self.assertEqual(said.returncode, 0)
        self.assertEqual(said.stderr, "gpumeter-nccl-files: NCCL Inspector's file is not read, or not all of it; it is tried again when it changes: "
                                      f"{self.tree}/{NAME}: line 2: the value must be a number from 0 on\n")
        text = self.page.read_text()
        self.assertIn(f'ml_nccl_bus_bandwidth_bytes_per_second{{{ON_GPU},run="llama",user="ann"{ALL_REDUCE}', text)
        self.assertTrue(text.endswith('gpumeter_nccl_files{source="flight_recorder",state="read"} 3\n'
                                      'gpumeter_nccl_files{source="inspector",state="invalid"} 1\n'), text)

    def test_its_page_ends_with_it(self) -> None:
        with subprocess.Popen([*self.command, f"--inspector={self.tree}/missing"], stderr=subprocess.PIPE, text=True) as running:
            self.assertEqual(running.stderr.readline(), "gpumeter-nccl-files: a folder of NCCL Inspector's files or the flight recorder's dumps does not "
                                                        f"exist yet: {self.tree}/missing\n")
            end = time.monotonic() + 60
            while not self.page.exists() and time.monotonic() < end:
                time.sleep(0.02)
            self.assertIn('state="read"} 3', self.page.read_text())
            running.send_signal(signal.SIGTERM)
            self.assertEqual(running.wait(30), 0)
        self.assertFalse(self.page.exists())

    def test_without_the_daemon(self) -> None:
        (self.tree / "api.sock").unlink()
        said = self.run_once()
        self.assertEqual(said.returncode, 0)
        self.assertRegex(said.stderr, r"^gpumeter-nccl-files: the daemon cannot be asked .*api\.sock: .*No such file or directory\n$")
        self.assertIn('state="foreign"} 3', self.page.read_text())

    def test_answers_that_are_none(self) -> None:
        for answer in (b"", b"no JSON", b"[]", b'{"processes": 5}', b'{"processes": [{}]}', b'{"processes": [{"devices": [1]}]}', b"[" * 100_000,
                       b'{"processes": "' + b"x" * (17 << 20)):
            self.daemon.answer = answer
            said = self.run_once()
            self.assertEqual(said.returncode, 0, said.stderr)
            self.assertIn('state="foreign"} 3', self.page.read_text(), answer[:40])

    def test_a_page_that_cannot_be_written(self) -> None:
        """A folder, or nothing, is in its place: it says so, leaves nothing behind, and ends well."""
        self.page.mkdir()
        said = self.run_once()
        self.assertEqual(said.returncode, 0)
        self.assertRegex(said.stderr, r"^gpumeter-nccl-files: the page cannot be written: .*Is a directory.*\n$")
        self.assertEqual(list(self.page.parent.iterdir()), [self.page])

    def test_wrong_options(self) -> None:
        for options, why in ((("--flight-recorder=relative",), '--flight-recorder must be an absolute path, such as "/var/log/torch/trace_rank_", not "relative"'),
                             ((f"--flight-recorder={self.tree}/rank_",), "--flight-recorder must name each prefix once"), (("--interval=0",), "--interval must be 1 to 60 seconds"),
                             (("--nosuch",), "--nosuch")):
            said = self.run_once(*options)
            self.assertEqual(said.returncode, 2)
            self.assertIn(why, said.stderr)

    def test_a_hostile_dump_takes_bounded_memory(self) -> None:
        """The limit is that of the unit. A list of two million dicts, and JSON of as many lists."""
        (self.tree / "rank_3").write_bytes(b"\x80\x02]" + b"}a" * ((2 << 20) - 1) + b".")
        (self.tree / "rank_4").write_bytes(b'{"a":[' + b"[]," * ((1 << 20) - 2) + b"0]}")
        for rank in (3, 4):
            os.utime(self.tree / f"rank_{rank}", (time.time() - 5,) * 2)
        limit = 1 << 30
        said = self.run_once(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertEqual(said.stderr.count("the dump has no pg_status"), 2, said.stderr)
        self.assertIn('state="read"} 3', self.page.read_text())


if __name__ == "__main__":
    unittest.main(verbosity=2)
