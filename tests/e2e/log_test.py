#!/usr/bin/env python3
"""A log without a reader, and a log that cannot be written: neither delays anything else, and lost records are counted."""
import fcntl
import os
import re
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

import at_once
from harness import BINARY, STOP, Daemon, run, wait_until
from notifications import Notifications

DEVICES = 600
GAP = re.compile(r"log records were dropped.* records=(\d+)")


class StalledPipe:
    """A pipe as stderr whose reader does not read until read()."""

    def __init__(self):
        self.reader, self.writer = os.pipe()
        fcntl.fcntl(self.writer, fcntl.F_SETPIPE_SZ, 4096)

    def __enter__(self) -> "StalledPipe":
        return self

    def __exit__(self, *_) -> None:
        os.close(self.reader)
        os.close(self.writer)

    def read(self) -> str:
        """Its current contents."""
        os.set_blocking(self.reader, False)
        parts = []
        try:
            while part := os.read(self.reader, 65536):
                parts.append(part)
        except BlockingIOError:
            pass
        return b"".join(parts).decode()


class StalledReaderTest(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory(prefix="gpumeter-test-"))
        self.pipe = self.enterContext(StalledPipe())

    def daemon(self, *arguments: str, env: dict | None = None) -> Daemon:
        return self.enterContext(Daemon(*arguments, env=env, stderr=self.pipe.writer))

    def flooded(self) -> tuple[Daemon, Path]:
        """A daemon that has logged more than its queue holds: one error for each key of its configuration."""
        config = Path(self.folder, "gpumeter.yaml")
        config.write_text("log:\n  format: logfmt\n")
        daemon = self.daemon("--simulate=2", f"--config.file={config}")
        config.write_text("".join(f"key{i}: 1\n" for i in range(3000)))
        daemon.send(signal.SIGHUP)
        wait_until(lambda: daemon.page().one("gpumeter_config_last_reload_successful") == 0, "the reload", 20)
        self.assertGreater(daemon.page().one("gpumeter_log_dropped_total"), 1000)
        return daemon, config

    def test_scrapes_readiness_devices_and_the_watchdog_go_on(self):
        heard = self.enterContext(Notifications(self.folder))
        env = {"NOTIFY_SOCKET": heard.path, "WATCHDOG_USEC": "1000000"}
        # Every device is found, read and lost: three lines each, in a pipe that holds about twenty.
        events = [f"--simulate-event=lose {gpu} after 2s" for gpu in range(DEVICES)]
        daemon = self.daemon(f"--simulate={DEVICES}", *events, env=env)
        wait_until(lambda: sum(daemon.page().of("gpu_up").values()) == 0, "all devices are lost", 60, every=0.5)
        for path in ("/metrics", "/-/ready", "/api/v1/devices") * 10:
            self.assertEqual(daemon.fetch(path, timeout=5).status, 200, path)
        pings = sum("WATCHDOG" in m for m in heard.read())
        wait_until(lambda: sum("WATCHDOG" in m for m in heard.read()) >= pings + 3, "watchdog pings go on", 20)
        status, seconds = daemon.stop()
        self.assertEqual(status, 0)
        self.assertLess(seconds, STOP)

    def test_a_reload_and_the_end_do_not_wait_for_it_either(self):
        daemon, config = self.flooded()
        config.write_text("log:\n  format: json\n")
        daemon.send(signal.SIGHUP)
        wait_until(lambda: daemon.page().one("gpumeter_config_last_reload_successful"), "the reload", 10)
        status, seconds = daemon.stop()
        self.assertEqual(status, 0)
        self.assertLess(seconds, STOP)

    def test_what_was_dropped_is_said_once_it_is_read_again(self):
        daemon, _ = self.flooded()
        dropped = daemon.page().one("gpumeter_log_dropped_total")
        text = ""

        def told():
            nonlocal text
            text += self.pipe.read()
            return GAP.search(text)

        self.assertEqual(int(wait_until(told, "the gap is reported", 20).group(1)), dropped)
        self.assertEqual(len(GAP.findall(text)), 1)
        self.assertTrue(all(line.startswith("ts=") for line in text.splitlines()), "lines are whole")
        self.assertEqual(text.count("unknown key"), 3000 - dropped)
        self.assertEqual(daemon.page().one("gpumeter_log_dropped_total"), dropped)
        self.assertEqual(daemon.stop()[0], 0)


class UnwritableLogTest(unittest.TestCase):
    def test_a_full_disk_and_a_reader_that_went_away_are_counted(self):
        reader, writer = os.pipe()
        os.close(reader)
        for stderr in (os.open("/dev/full", os.O_WRONLY), writer):
            with Daemon("--simulate=1", stderr=stderr) as daemon:
                os.close(stderr)
                self.assertGreater(daemon.page().one("gpumeter_log_dropped_total"), 2)
                self.assertEqual(daemon.stop()[0], 0)


class ClosedStreamsTest(unittest.TestCase):
    def test_no_descriptor_of_the_daemon_takes_the_number_of_a_closed_stream(self):
        with Daemon("--simulate=1", wrap=["sh", "-c", 'exec "$0" "$@" <&- >&- 2>&-']) as daemon:
            opened = {fd: os.readlink(f"/proc/{daemon.process.pid}/fd/{fd}") for fd in (0, 1, 2)}
            self.assertEqual(opened, {0: "/dev/null", 1: "/dev/null", 2: "/dev/null"})
            self.assertEqual(daemon.stop()[0], 0)


class LastLinesTest(unittest.TestCase):
    def test_why_the_start_failed_is_in_the_log(self):
        with tempfile.TemporaryDirectory(prefix="gpumeter-test-") as folder:
            said = run("--web.systemd-socket", "--simulate=1", f"--path.state={folder}")
        self.assertEqual(said.returncode, 1)
        self.assertIn('msg="cannot start"', said.stderr)


class PrintedTest(unittest.TestCase):
    def test_what_cannot_be_printed_is_an_error(self):
        with tempfile.TemporaryDirectory(prefix="gpumeter-test-") as folder:
            for action in ("--once=0", "--list-devices", "--check-config", "--version", "--help", "--print-metrics=text",
                           "--print-config=markdown"):
                for stdout in ("/dev/full", "&-"):
                    said = subprocess.run(
                        ["sh", "-c", f'"$0" "$@" >{stdout}', BINARY, action, "--simulate=1", f"--path.state={folder}"],
                        stderr=subprocess.PIPE, text=True, timeout=60)
                    self.assertEqual(said.returncode, 1, f"{action} >{stdout}")
                    self.assertIn("stdout cannot be written", said.stderr, f"{action} >{stdout}")


if __name__ == "__main__":
    at_once.main()
