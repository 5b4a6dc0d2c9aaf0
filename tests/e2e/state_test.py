#!/usr/bin/env python3
"""Faults of the state folder and the configuration file: hung, damaged, not a regular file; and a crash."""
import json
import os
import signal
import tempfile
import time
import unittest
from pathlib import Path

import at_once
from faulty import Faulty, missing
from harness import Daemon, run, wait_until
from notifications import Notifications

STOP = 5.0  # SIGTERM to the log's last line, whatever hangs


class TemporaryFolder(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory(prefix="gpumeter-test-"))

    def config(self, text: str) -> str:
        Path(self.folder, "gpumeter.yaml").write_text(text)
        return f"--config.file={self.folder}/gpumeter.yaml"


@unittest.skipIf(missing(), missing())
class HungFolderTest(TemporaryFolder):
    def setUp(self):
        super().setUp()
        self.state = self.enterContext(Faulty())
        self.devices = self.state.backing / "devices.json"
        self.heard = self.enterContext(Notifications(self.folder))
        self.env = {"NOTIFY_SOCKET": self.heard.path, "WATCHDOG_USEC": "1000000"}

    def pings(self) -> int:
        return sum("WATCHDOG" in message for message in self.heard.read())

    def daemon(self, *arguments: str) -> Daemon:
        daemon = self.enterContext(Daemon(*arguments, state=str(self.state.root), env=self.env, wait=False))
        self.addCleanup(self.state.heal)
        daemon.wait_ready()
        return daemon

    def stop(self, daemon: Daemon) -> None:
        """The log says "stopped" in time; the kernel keeps the process until the call ends."""
        daemon.send(signal.SIGTERM)
        wait_until(lambda: "msg=stopped" in daemon.log, "the daemon is stopped", STOP)
        self.assertIn("the state folder does not answer; the last changes are not saved", daemon.log)
        self.state.heal()
        self.assertEqual(daemon.process.wait(20), 0)

    def test_fsync_hangs(self):
        daemon = self.daemon("--simulate=2", "--simulate-event=lose 1 after 8s")
        wait_until(self.devices.exists, "the first save", 20)
        self.state.fail("fsync:hang", "")
        wait_until(self.state.hangs, "fsync hangs", 30)  # the loss is saved
        pings = self.pings()
        wait_until(lambda: daemon.page().one("gpu_up", gpu="1") == 0, "the loss is on the page", 10)
        wait_until(lambda: self.pings() >= pings + 3, "watchdog pings go on", 20)
        self.assertEqual(daemon.fetch("/-/ready", timeout=2).status, 200)
        self.stop(daemon)

    def test_the_folder_hangs_at_the_start(self):
        self.devices.write_text("{}")
        self.state.fail("getattr:hang", "^/.")
        daemon = self.daemon("--simulate=2")
        self.assertIn("the state folder does not answer; indexes start from 0", daemon.log)
        self.assertEqual(daemon.page().one("gpu_up", gpu="1"), 1)
        wait_until(lambda: self.heard.keys() == ["READY"], "READY=1", 20)
        self.stop(daemon)
        self.assertEqual(self.devices.read_text(), "{}", "what was not read is not overwritten")


class NoFileTest(TemporaryFolder):
    def test_a_state_file_that_is_a_fifo(self):
        os.mkfifo(f"{self.folder}/devices.json")
        with Daemon("--simulate=1", state=self.folder) as daemon:
            self.assertIn(f"{self.folder}/devices.json: is not a regular file", daemon.log)
            self.assertEqual(daemon.page().one("gpu_up"), 1)
            status, seconds = daemon.stop()
            self.assertEqual(status, 0)
            self.assertLess(seconds, STOP)

    def test_a_configuration_that_is_a_fifo(self):
        fifo = f"{self.folder}/fifo.yaml"
        os.mkfifo(fifo)
        for arguments in (["--check-config"], ["--simulate=1"]):
            said = run(f"--config.file={fifo}", *arguments, timeout=20)
            self.assertEqual((said.returncode, said.stderr), (2, f"{fifo}: is not a regular file\n"))

    def test_a_configuration_that_becomes_a_fifo(self):
        flag = self.config("")
        with Daemon("--simulate=1", flag) as daemon:
            path = Path(self.folder, "gpumeter.yaml")
            path.unlink()
            os.mkfifo(path)
            daemon.send(signal.SIGHUP)
            wait_until(lambda: daemon.page().one("gpumeter_config_last_reload_successful") == 0, "it is refused", 20)
            self.assertIn(f"{path}: is not a regular file", daemon.log)
            self.assertEqual(daemon.stop()[0], 0)

    def test_a_damaged_state_file_is_set_aside(self):
        entry = {"uuid": "GPU-1", "index": 0, "collector": "simulated", "vendor": "", "model": "", "pci_address": "",
                 "last_seen": 1}
        devices = {"devices": [entry, {**entry, "uuid": "GPU-2"}]}
        Path(self.folder, "devices.json").write_text(json.dumps(devices))
        with Daemon("--simulate=1", state=self.folder) as daemon:
            self.assertIn("devices[1]: index 0 is also used by GPU-1; the file was renamed to devices.json.bad", daemon.log)
            self.assertEqual(json.loads(Path(self.folder, "devices.json.bad").read_text()), devices)
            self.assertEqual(daemon.page().one("gpu_up", gpu="0"), 1)
            self.assertEqual(len(daemon.page().of("gpu_up")), 1)


class ForgettingTest(TemporaryFolder):
    def test_a_crash_does_not_make_it_forget_a_dead_gpu(self):
        forget = 4.0
        flag = self.config(f"devices:\n  forget: {forget:.0f}s\n")
        with Daemon("--simulate=2", flag, state=self.folder) as daemon:
            wait_until(lambda: os.path.exists(f"{self.folder}/devices.json"), "the state is saved", 20)
            time.sleep(forget + 1)  # longer than what it takes to be forgotten
            daemon.process.kill()
        with Daemon("--simulate=1", flag, state=self.folder) as daemon:
            began = time.monotonic()
            self.assertEqual(daemon.page().one("gpu_up", gpu="1"), 0)
            self.assertNotIn("device forgotten", daemon.log)
            wait_until(lambda: not daemon.page().of("gpu_up", gpu="1"), "it is forgotten in the end", 20)
            self.assertGreater(time.monotonic() - began, forget / 2)
            self.assertEqual(daemon.page().one("gpu_up", gpu="0"), 1)

    def test_without_patience_the_devices_that_are_there_stay(self):
        flag = self.config("devices:\n  forget: 0s\n")
        with Daemon("--simulate=2", flag, state=self.folder) as daemon:
            time.sleep(1)
            self.assertEqual([daemon.page().one("gpu_up", gpu=gpu) for gpu in "01"], [1, 1])
            self.assertEqual(daemon.stop()[0], 0)
        with Daemon("--simulate=1", flag, state=self.folder) as daemon:
            wait_until(lambda: not daemon.page().of("gpu_up", gpu="1"), "the missing one goes", 5)


if __name__ == "__main__":
    at_once.main()
