#!/usr/bin/env python3
"""`gpumeter record` and `--replay`: the pages of a machine with failures are served again, series by series, and judged alike; the daemon
that serves them says that they are a recording."""
from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import zlib
from pathlib import Path

from harness import BINARY, Daemon, wait_until

SECONDS = float(os.environ.get("RECORD_SECONDS", "11"))
SPEED = int(os.environ.get("REPLAY_SPEED", "2"))
# A busy machine records its first page seconds after the daemon began.
EVENTS = ("hang 1 after 5s for 2s", "lose 2 after 6s for 2s", "xid:79 0 after 6s")
OF_THE_MACHINE = ("gpumeter_collector_", "gpumeter_devices_expected", "gpumeter_given_device_info", "gpumeter_pci_devices", "gpumeter_read_errors_total")
HEADING = re.compile(rb"# gpumeter: recorded (\d+) (\d+)\n")


def members(data: bytes) -> "list[tuple[int, str]]":
    """Time and text of each page, read without gpumeter: gzip members, each with one heading."""
    pages = []
    while data:
        inflate = zlib.decompressobj(31)
        text = inflate.decompress(data)
        data = inflate.unused_data
        heading = HEADING.match(text)
        assert len(text) - heading.end() == int(heading[2])
        pages.append((int(heading[1]), text[heading.end():].decode()))
    return pages


def series(text: str) -> "list[str]":
    """The samples that are not the serving daemon's own."""
    own = ("gpumeter_", "process_")
    return [line for line in text.splitlines() if not line.startswith("#") and (line.startswith(OF_THE_MACHINE) or not line.startswith(own))]


def record(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([BINARY, "record", *arguments], capture_output=True, text=True, timeout=SECONDS + 60)


class Record(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="gpumeter-test-")))
        self.file = self.folder / "recording"

    def test_replayed_pages_are_those_recorded(self) -> None:
        events = [f"--simulate-event={each}" for each in EVENTS]
        socket = self.folder / "web.sock"
        with Daemon("--simulate=3", *events, "--web.listen-address=unix:" + str(socket), wait=False):
            wait_until(socket.exists, "the daemon listens")
            taken = record(str(self.file), f"--for={SECONDS}s", f"--url=unix:{socket}")
        self.assertEqual((taken.returncode, taken.stderr), (0, ""))
        pages = members(self.file.read_bytes())
        self.assertEqual(taken.stdout, f"{self.file}: {len(pages)} pages\n")
        self.assertGreaterEqual(len(pages), SECONDS - 1)
        print(f"{len(pages)} pages in {self.file.stat().st_size} bytes")
        recorded = {time: text for time, text in pages}
        self.assertIn('gpu_up{gpu="1"', "".join(series(pages[-1][1])))
        shown, reports = {}, []
        with Daemon(f"--replay={self.file}", f"--speed={SPEED}") as daemon:
            while True:
                text = daemon.fetch("/metrics").text
                at = re.search(r"^gpumeter_replay_time_seconds (\S+)$", text, re.M)
                if not at:
                    break
                shown[round(float(at[1]) * 1000)] = text
                reports.append(json.loads(daemon.fetch("/api/v1/health").text)["state"])
                self.assertTrue(json.loads(daemon.fetch("/api/v1/live").text)["simulated"], "a browser shows that it is no machine's")
                time.sleep(0.05)
            self.assertIn("the recording has ended", daemon.log)
            self.assertEqual(series(text), [], "at the end the series leave the page")
            self.assertEqual(daemon.stop()[0], 0)
            self.assertNotIn("level=error", daemon.log)
        self.assertEqual(sorted(shown), sorted(recorded), "each page is shown")
        for moment, text in shown.items():
            self.assertEqual(series(text), series(recorded[moment]), moment)
            self.assertIn("\ngpumeter_simulated 1\n", text)
        self.assertIn("failed", reports)

    def test_a_signal_ends_a_recording(self) -> None:
        with Daemon("--simulate=1") as daemon:
            process = subprocess.Popen([BINARY, "record", str(self.file), f"--url=127.0.0.1:{daemon.port}"], stdout=subprocess.PIPE, text=True)
            wait_until(lambda: self.file.exists() and self.file.stat().st_size > 0, "the first page is written")
            process.send_signal(signal.SIGINT)
            self.assertRegex(process.communicate(timeout=20)[0], r": \d+ pages\n$")
            self.assertEqual(process.returncode, 0)
            self.assertTrue(members(self.file.read_bytes()))
            again = record(str(self.file), f"--url=127.0.0.1:{daemon.port}")
            self.assertEqual((again.returncode, again.stderr), (1, f"gpumeter: {self.file}: File exists\n"))
            absent = record(str(self.folder / "other"), "--url=unix:/nowhere.sock")
            self.assertEqual(absent.returncode, 1)
            self.assertFalse((self.folder / "other").exists(), "without a daemon there is no file")

    def test_a_stranger_s_file_is_refused_with_its_place(self) -> None:
        self.file.write_bytes(b"# gpumeter: recorded 5 99999999999\n")
        run = subprocess.run([BINARY, f"--replay={self.file}", "--web.listen-address=127.0.0.1:0"], capture_output=True, text=True, timeout=60)
        self.assertEqual(run.returncode, 1)
        self.assertIn(f'error="{self.file}: byte 0: a page must have at most 64 MiB, not 99999999999 bytes"', run.stderr)


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=2))
