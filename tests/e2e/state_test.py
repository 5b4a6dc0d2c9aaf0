#!/usr/bin/env python3
"""Faults of the state folder and the configuration file: hung, damaged, not a regular file, of another machine; a crash; and
a lost GPU, which is down until a person forgets it."""
import json
import os
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

import at_once
from faulty import Faulty, missing
from harness import BINARY, STOP, Daemon, run, wait_until
from notifications import Notifications



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

    def test_a_full_disk_and_its_end_are_in_the_log(self):
        self.state.fail("write:ENOSPC", "")
        daemon = self.daemon("--simulate=2")
        for what in ("indexes", "figures"):
            wait_until(lambda: f"{what} cannot be saved" in daemon.log, f"{what} cannot be saved", 30)
            self.assertNotIn(f"{what} are saved again", daemon.log)
        self.state.heal()
        for what in ("indexes", "figures"):
            wait_until(lambda: f"{what} are saved again" in daemon.log, f"{what} are saved again", 30)
        self.assertIn("the copy of the figures is written again", daemon.log)
        self.assertTrue(self.devices.exists())

    def test_the_folder_hangs_at_the_start(self):
        self.devices.write_text("{}")
        self.state.fail("getattr:hang", "^/.")
        daemon = self.daemon("--simulate=2")
        self.assertIn("the state folder does not answer; indexes start from 0", daemon.log)
        self.assertEqual(daemon.page().one("gpu_up", gpu="1"), 1)
        wait_until(lambda: self.heard.keys() == ["READY"], "READY=1", 20)
        self.stop(daemon)
        self.assertEqual(self.devices.read_text(), "{}", "a file that was not read is not overwritten")


    def test_forget_does_not_wait_for_a_folder_that_hangs(self):
        self.daemon("--simulate=1")
        self.state.fail("getattr:hang", "^/.")
        command = subprocess.Popen([BINARY, "forget", "GPU-1", f"--path.state={self.state.root}"], stderr=subprocess.PIPE, text=True)
        self.addCleanup(command.stderr.close)
        self.assertEqual(command.stderr.readline(), f"gpumeter: not forgotten: {self.state.root} has not answered for 10 s; its file "
                         "system hangs. Try again when it answers\n")
        self.state.heal()  # the kernel ends no process that is inside a call that hangs
        self.assertEqual(command.wait(20), 1)


class SecondDaemonTest(TemporaryFolder):
    def test_serves_and_leaves_the_folder_to_the_first(self):
        devices = Path(self.folder, "devices.json")
        with Daemon("--simulate=2", state=self.folder) as first:
            wait_until(devices.exists, "the state is saved", 20)
            with Daemon("--simulate=3", state=self.folder) as second:
                self.assertIn("another gpumeter uses the state folder; this one reads it and saves nothing until it is restarted",
                              second.log)
                wait_until(lambda: "control.sock: another process listens on this socket" in second.log, "the socket is left alone", 20)
                wait_until(lambda: len(second.page().of("gpu_up")) == 3, "the second serves", 20)
                self.assertEqual(second.stop()[0], 0)
            self.assertEqual(len(json.loads(devices.read_text())["devices"]), 2)
            uuid = dict(next(iter(first.page().of("gpu_up", gpu="0")))[1])["uuid"]
            said = run("forget", uuid, f"--path.state={self.folder}")
            self.assertEqual(said.stderr, f"gpumeter: not forgotten: {uuid} is still there; discovery would find it again\n")
        with Daemon("--simulate=3", state=self.folder) as alone:
            self.assertNotIn("another gpumeter", alone.log)
            wait_until(lambda: len(json.loads(devices.read_text())["devices"]) == 3, "the folder has an owner again", 20)


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
            time.sleep(forget + 1)  # longer than the time after which a missing device is forgotten
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


    def known(self) -> dict:
        """The state file's devices by uuid; empty if there is none yet."""
        path = Path(self.folder, "devices.json")
        return {device["uuid"]: device for device in json.loads(path.read_text())["devices"]} if path.exists() else {}

    def forget(self, uuid: str):
        return run("forget", uuid, f"--path.state={self.folder}", self.config(""))

    def test_a_lost_gpu_is_down_over_a_crash_and_a_reboot_until_a_person_forgets_it(self):
        began = int(time.time())
        with Daemon("--simulate=2", "--simulate-event=lose 1 after 2s", state=self.folder) as daemon:
            wait_until(lambda: daemon.page().one("gpu_up", gpu="1") == 0, "the GPU is lost", 20)
            wait_until(lambda: len(self.known()) == 2, "the state is saved", 20)
            daemon.send(signal.SIGKILL)
            daemon.process.wait(20)
        lost = sorted(self.known())[1]
        self.assertGreaterEqual(self.known()[lost]["last_seen"], began, "last_seen survives the crash")
        for _ in range(2):  # two boots without the card
            with Daemon("--simulate=1", state=self.folder) as daemon:
                for _ in range(5):
                    page = daemon.page()
                    self.assertEqual((page.one("gpu_up", gpu="0"), page.one("gpu_up", gpu="1", uuid=lost)), (1, 0))
                    time.sleep(0.3)
                daemon.send(signal.SIGKILL)
        with Daemon("--simulate=1", state=self.folder) as daemon:
            there = self.forget(sorted(self.known())[0])
            self.assertEqual(there.returncode, 1)
            self.assertIn("is still there; discovery would find it again", there.stderr)
            self.assertIn(f"missing are {lost}", self.forget("GPU-0").stderr)
            done = self.forget(lost)
            self.assertEqual((done.returncode, done.stdout), (0, f"{lost} is forgotten\n"), done.stderr)
            wait_until(lambda: not daemon.page().of("gpu_up", gpu="1"), "its series end", 10)
            self.assertEqual(daemon.page().one("gpu_up", gpu="0"), 1)
            wait_until(lambda: lost not in self.known(), "the file follows", 10)

    def test_without_a_daemon_the_file_is_edited(self):
        with Daemon("--simulate=2", state=self.folder) as daemon:
            self.assertEqual(daemon.stop()[0], 0)
        first, second = sorted(self.known())
        self.assertEqual(self.forget(second).returncode, 0)
        self.assertEqual(list(self.known()), [first])
        again = self.forget(second)
        self.assertEqual((again.returncode, again.stderr), (1, f"gpumeter: not forgotten: {second} is not a known device; known are {first}\n"))
        with Daemon("--simulate=1", state=self.folder) as daemon:
            self.assertEqual(len(daemon.page().of("gpu_up")), 1)

    @unittest.skipIf(os.geteuid() != 0, "requires root")
    def test_a_user_may_neither_ask_the_daemon_nor_edit_the_file(self):
        os.chmod(self.folder, 0o755)
        config = self.config("")

        def as_nobody():
            return subprocess.run([BINARY, "forget", "SIM-1-1", f"--path.state={self.folder}", config], capture_output=True,
                                  text=True, timeout=20, user=65534, group=65534, extra_groups=[])
        try:
            reachable = as_nobody()
        except PermissionError:
            self.skipTest("the binary is in a folder that only its owner may read")
        self.assertEqual(reachable.returncode, 1)
        with Daemon("--simulate=2", state=self.folder) as daemon:
            wait_until(lambda: len(self.known()) == 2, "the state is saved", 20)
            said = as_nobody()
            self.assertEqual(said.returncode, 1)
            self.assertIn("control.sock: Permission denied; run it as root", said.stderr)
            self.assertEqual(len(daemon.page().of("gpu_up")), 2)
            self.assertEqual(daemon.stop()[0], 0)
        self.assertEqual(as_nobody().returncode, 1)
        self.assertEqual(len(self.known()), 2)


class OtherMachineTest(TemporaryFolder):
    def test_the_state_folder_of_another_machine_is_empty(self):
        path = Path(self.folder, "devices.json")
        with Daemon("--simulate=2", state=self.folder) as daemon:
            self.assertEqual(daemon.stop()[0], 0)
        document = json.loads(path.read_text())
        if "machine_id" not in document:
            self.skipTest("this machine has no /etc/machine-id")
        path.write_text(json.dumps({**document, "machine_id": "0" * 32}))
        with Daemon("--simulate=1", state=self.folder) as daemon:
            self.assertEqual(daemon.log.count("the state folder belongs to another machine"), 1)
            self.assertEqual(len(daemon.page().of("gpu_up")), 1)
            wait_until(lambda: json.loads(path.read_text())["machine_id"] == document["machine_id"], "the file is this machine's", 10)
        self.assertEqual(len(json.loads(path.read_text())["devices"]), 1)


if __name__ == "__main__":
    at_once.main()
