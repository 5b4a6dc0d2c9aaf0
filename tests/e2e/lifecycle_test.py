#!/usr/bin/env python3
"""Start, reload and stop for a person and for systemd: flags, files, signals, notifications, sockets."""
import os
import signal
import subprocess
import tempfile
import unittest
from pathlib import Path

from harness import BINARY, Daemon, fetch, free_port, run, text_page, wait_until
from notifications import Notifications


def ready(port: int) -> bool:
    try:
        return fetch(port, "/-/ready").status == 200
    except OSError:
        return False


class TemporaryFolder(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory(prefix="gpumeter-test-"))

    def write(self, text: str, name: str = "gpumeter.yaml") -> str:
        Path(self.folder, name).write_text(text)
        return f"{self.folder}/{name}"


class CommandLineTest(TemporaryFolder):
    def test_version(self):
        said = run("--version")
        self.assertEqual(said.returncode, 0)
        self.assertRegex(said.stdout, r"^gpumeter, version \d+\.\d+\.\d+ \(branch: .+, revision: .+\)\n")

    def test_help(self):
        said = run("--help")
        self.assertEqual(said.returncode, 0)
        for flag in ("--config.file", "--web.listen-address", "--path.sysfs", "--once", "--simulate", "--check-config"):
            self.assertIn(flag, said.stdout)

    def test_unknown_flag_and_bad_values_are_usage_errors(self):
        for wrong in ("--nosuch", "--log.level=loud", "--simulate=many", "--no-collector.nosuch"):
            said = run(wrong)
            self.assertEqual((said.returncode, said.stdout), (2, ""), wrong)
            self.assertTrue(said.stderr, wrong)

    def test_check_config_of_a_good_file(self):
        path = self.write("sampling:\n  normal: 20s\n")
        said = run("--check-config", f"--config.file={path}")
        self.assertEqual(said.returncode, 0, said.stderr)

    def test_check_config_names_every_problem_with_file_line_and_key(self):
        path = self.write("web:\n  lisen: [\":1\"]\nsampling:\n  fast: 1\n")
        said = run("--check-config", f"--config.file={path}")
        self.assertEqual(said.returncode, 2)
        for part in (f"{path}:2", "web.lisen", f"{path}:4", "sampling.fast"):
            self.assertIn(part, said.stderr + said.stdout)

    def test_a_named_file_must_exist(self):
        said = run(f"--config.file={self.folder}/nosuch.yaml")
        self.assertEqual(said.returncode, 2)
        self.assertIn("nosuch.yaml", said.stderr)

    def test_once_prints_one_page_and_ends(self):
        said = run("--once=0", "--simulate=1", f"--path.state={self.folder}")
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertEqual(text_page(said.stdout).one("gpu_up"), 1)

    def test_list_devices(self):
        said = run("--list-devices", "--simulate=2", f"--path.state={self.folder}")
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertEqual(len([line for line in said.stdout.splitlines() if "SIM-" in line]), 2)


class StartTest(TemporaryFolder):
    def empty_machine(self) -> list[str]:
        for tree in ("sys", "state"):
            os.makedirs(f"{self.folder}/{tree}", exist_ok=True)
        return [f"--path.sysfs={self.folder}/sys"]

    def test_no_gpu_at_all(self):
        with Daemon(*self.empty_machine()) as daemon:
            page = daemon.page()
            self.assertEqual(page.of("gpu_up"), {})
            self.assertEqual(len(page.of("gpumeter_build_info")), 1)
            self.assertEqual(daemon.stop()[0], 0)

    def test_port_in_use_is_a_sentence_and_exit_1(self):
        with Daemon(*self.empty_machine()) as first:
            said = run(f"--web.listen-address=127.0.0.1:{first.port}", f"--path.state={self.folder}/state",
                       *self.empty_machine())
            self.assertEqual(said.returncode, 1)
            self.assertIn(f"cannot listen on 127.0.0.1:{first.port}: Address already in use by gpumeter (process {first.process.pid}); stop it, or "
                          "choose another address by web.listen or --web.listen-address", said.stderr)

    def test_a_family_with_a_slip_is_an_error_and_an_unknown_one_a_note(self):
        config = Path(self.folder, "gpumeter.yaml")
        config.write_text("metrics:\n  include: [gpu_up, my_pages_*,\n            gpu_powr_watts]\n")
        said = run("--check-config", f"--config.file={config}")
        self.assertEqual(said.returncode, 2)
        self.assertIn(f'{config}:3: metrics.include: no known family has the name in "gpu_powr_watts"; did you mean gpu_power_watts?\n', said.stderr)
        config.write_text("metrics: {include: [my_pages_*]}\n")
        said = run("--check-config", f"--config.file={config}")
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertIn('metrics.include: no known family has the name in "my_pages_*"', said.stderr + said.stdout)


class ReloadTest(TemporaryFolder):
    def reloaded(self, daemon: Daemon, value: float):
        wait_until(lambda: daemon.page().one("gpumeter_config_last_reload_successful") == value,
                   f"gpumeter_config_last_reload_successful is {value}", 20)

    def test_good_and_bad_files_and_keys_that_need_a_restart(self):
        path = self.write("sampling:\n  normal: 10s\n")
        with Daemon("--simulate=1", f"--config.file={path}") as daemon:
            self.assertEqual(daemon.page().one("gpumeter_config_last_reload_successful"), 1)
            for text, value, said in (("sampling:\n  nosuch: 10s\n", 0, "sampling.nosuch"),
                                      ("sampling:\n  normal: 20s\n", 1, ""),
                                      ("web:\n  telemetry_path: /other\n", 0, "needs a restart"),
                                      ("log:\n  level: debug\n", 1, "")):
                self.write(text)
                daemon.send(signal.SIGHUP)
                self.reloaded(daemon, value)
                self.assertIn(said, daemon.log)
            self.assertEqual(daemon.fetch("/metrics").status, 200)
            self.assertEqual(daemon.stop()[0], 0)

    def test_values_go_on_over_a_reload(self):
        path = self.write("sampling:\n  normal: 10s\n")
        busy = lambda page: page.one("gpu_observed_seconds_total", tier="fast", gpu="0") or 0
        with Daemon("--simulate=1", f"--config.file={path}") as daemon:
            before = wait_until(lambda: (p := daemon.page()) and busy(p) and p, "observed time counts", 20)
            daemon.send(signal.SIGHUP)
            after = wait_until(lambda: (p := daemon.page()) and busy(p) > busy(before) and p, "it goes on", 20)
            for counter, value in before.counters().items():
                self.assertGreaterEqual(after[counter], value, counter)


class SystemdTest(TemporaryFolder):
    def test_notify_sequence_and_watchdog(self):
        path = self.write("log:\n  level: info\n")
        with Notifications(self.folder) as heard:
            env = {"NOTIFY_SOCKET": heard.path, "WATCHDOG_USEC": "1000000"}
            with Daemon("--simulate=1", f"--config.file={path}", env=env) as daemon:
                wait_until(lambda: heard.keys() == ["READY"], "READY=1", 20)
                wait_until(lambda: any("STATUS" in m for m in heard.read()), "a status", 20)
                wait_until(lambda: sum("WATCHDOG" in m for m in heard.read()) >= 3, "three watchdog pings", 20)
                daemon.send(signal.SIGHUP)
                wait_until(lambda: heard.keys() == ["READY", "RELOADING", "READY"], "RELOADING=1, then READY=1", 20)
                reloading = next(m for m in heard.read() if "RELOADING" in m)
                self.assertTrue(reloading["MONOTONIC_USEC"].isdigit())
                self.assertEqual(daemon.stop()[0], 0)
            self.assertEqual(heard.keys(), ["READY", "RELOADING", "READY", "STOPPING"])

    def test_sigint_ends_it_cleanly_too(self):
        with Daemon("--simulate=1") as daemon:
            self.assertEqual(daemon.stop(signal.SIGINT)[0], 0)

    def test_socket_activation(self):
        for flags in ([], ["--web.systemd-socket"]):
            with self.subTest(flags=flags):
                self.serve_on_a_passed_socket(free_port(), flags)

    def serve_on_a_passed_socket(self, port: int, flags: list[str]):
        # systemd-socket-activate starts the daemon at the first connection, with the socket as descriptor 3.
        with subprocess.Popen(["systemd-socket-activate", "-l", f"127.0.0.1:{port}", BINARY, *flags,
                               "--simulate=1", f"--path.state={self.folder}"], stderr=subprocess.DEVNULL) as process:
            try:
                wait_until(lambda: ready(port), "ready over the passed socket", 30)
            finally:
                process.send_signal(signal.SIGTERM)
                self.assertEqual(process.wait(20), 0)

    def test_socket_activation_without_a_socket(self):
        said = run("--web.systemd-socket", "--simulate=1", f"--path.state={self.folder}")
        self.assertEqual(said.returncode, 1)
        self.assertIn("no socket activation file descriptors found", said.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
