#!/usr/bin/env python3
"""Given a running daemon and a changed file, then `gpumeter --reload` reports the outcome of exactly that reload; invalid
files are rejected with file, line and key."""
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

import at_once
from harness import Daemon, is_sanitized, run, wait_until

# A name service that never answers, and one that fails, in front of the C library's.
NAME_SERVICE = """
#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>
int getpwnam_r(const char* name, struct passwd* entry, char* buffer, size_t size, struct passwd** found) {
  (void)name; (void)entry; (void)buffer; (void)size;
  if (getenv("NAME_SERVICE_HANGS")) for (;;) pause();
  *found = 0;
  return EIO;
}
"""


class Folder(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="gpumeter-test-")))
        self.file = self.folder / "gpumeter.yaml"
        self.env = {"RUNTIME_DIRECTORY": str(self.folder)}

    def write(self, text: str) -> None:
        self.file.write_text(text)

    def check(self, text: str) -> str:
        """The errors of --check-config for a file that must be rejected."""
        self.write(text)
        said = run("--check-config", f"--config.file={self.file}")
        self.assertEqual(said.returncode, 2, said.stdout + said.stderr)
        return said.stderr.replace(f"{self.file}:", "FILE:")


    def daemon(self, *arguments: str, **named) -> Daemon:
        return Daemon("--simulate=1", f"--config.file={self.file}", *arguments, env=self.env | named.pop("env", {}), **named)

    def reload(self, pid: int) -> subprocess.CompletedProcess:
        return run("--reload", str(pid), env=self.env)


class ReloadTest(Folder):
    def test_the_outcome_is_that_of_this_reload(self) -> None:
        self.write("log: {level: info}\n")
        cases = (("log: {level: loud}\n", 1, f"{self.file}:1: log.level: must be"),
                 ("log: {level: debug}\n", 0, ""),
                 ("web: {telemetry_path: /other}\n", 1, "web.telemetry_path needs a restart"),
                 ("sampling: {nosuch: 1s}\n", 1, f"{self.file}:1: sampling.nosuch: unknown key"),
                 ("log: {level: warn}\n", 0, ""))
        with self.daemon() as daemon:
            for text, code, words in cases * 3:
                self.write(text)
                said = self.reload(daemon.process.pid)
                self.assertEqual(said.returncode, code, said.stdout + said.stderr)
                self.assertIn(words, said.stderr)
                self.assertEqual(bool(said.stderr), code != 0, said.stderr)
                wait_until(lambda: daemon.page().one("gpumeter_config_last_reload_successful") == 1 - code, "the page agrees", 20)
            self.assertEqual(daemon.stop()[0], 0)

    def test_the_expected_devices_follow_a_reload(self) -> None:
        path = Path(self.folder, "expected.yaml")
        path.write_text("devices: {expected: 3}\n")
        with Daemon("--simulate=1", f"--config.file={path}") as daemon:
            def expected() -> dict:
                return {labels: value for (_, labels), value in daemon.page().of("gpumeter_devices_expected").items()}
            wait_until(lambda: expected() == {(("vendor", "any"),): 3}, "the number of the machine", 20)
            path.write_text("devices: {expected: {nvidia: 8, amd: 1}}\n")
            daemon.send(signal.SIGHUP)
            wait_until(lambda: expected() == {(("vendor", "amd"),): 1, (("vendor", "nvidia"),): 8}, "the numbers by vendor", 20)
            path.write_text("")
            daemon.send(signal.SIGHUP)
            wait_until(lambda: expected() == {}, "no number", 20)

    @unittest.skipIf(is_sanitized(), "a sanitizer's memory grows by itself")
    def test_a_storm_of_reloads_gathers_nothing(self) -> None:
        self.write("")
        with Daemon("--simulate=8", f"--config.file={self.file}") as daemon:
            def most_memory() -> int:
                status = Path(f"/proc/{daemon.process.pid}/status").read_text()
                return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))) << 10

            before, end = most_memory(), time.monotonic() + 3
            while time.monotonic() < end:
                daemon.send(signal.SIGHUP)
                time.sleep(0.0005)
            self.assertLess(most_memory() - before, 16 << 20)
            self.assertEqual(len(daemon.page().of("gpu_up")), 8)

    def test_a_daemon_that_ends_or_is_not_there(self) -> None:
        self.write("log: {level: info}\n")
        with self.daemon() as daemon:
            pid = daemon.process.pid
            daemon.stop()
        started = time.monotonic()
        said = self.reload(pid)
        self.assertEqual((said.returncode, time.monotonic() - started < 5), (1, True))
        self.assertIn(f"process {pid} cannot receive SIGHUP: No such process", said.stderr)

    def test_a_daemon_that_stands_still_leaves_no_outcome(self) -> None:
        """An outcome of before does not count."""
        self.write("log: {level: info}\n")
        with self.daemon() as daemon:
            self.assertEqual(self.reload(daemon.process.pid).returncode, 0)
            daemon.send(signal.SIGSTOP)
            said = self.reload(daemon.process.pid)
            daemon.send(signal.SIGCONT)
            self.assertEqual(said.returncode, 1)
            self.assertIn("left no outcome", said.stderr)

    def test_no_process_is_meant_by_a_number_that_is_none(self) -> None:
        for number in ("0", "-1", "all", "4194305"):
            said = run("--reload", number, env=self.env)
            self.assertEqual(said.returncode, 2, said.stderr)


class RefusedTest(Folder):
    def test_tiers_that_are_not_in_order(self) -> None:
        self.assertEqual(self.check("sampling:\n  fast: 5m\n  normal: 1s\n"),
                         "FILE:3: sampling.normal: must not be below sampling.fast, which is 5m; it is 1s\n")
        self.assertEqual(self.check("sampling:\n  fast: 15s\n"),
                         "FILE:2: sampling.fast: must not be above sampling.normal, which is 10s; it is 15s\n")
        self.assertEqual(self.check("sampling: {slow: 5s}\n"),
                         "FILE:1: sampling.slow: must not be below sampling.normal, which is 10s; it is 5s\n")

    def test_an_element_of_a_list_of_the_simulator(self) -> None:
        text = 'collectors:\n  simulated:\n    enabled: true\n    KEY:\n      - "GOOD"\n      - "BAD"\n'
        for key, good, bad in (("events", "hang 1 after 1s", "hang 9 after 1s"), ("processes", "1=7", "9=7")):
            said = self.check(text.replace("KEY", key).replace("GOOD", good).replace("BAD", bad))
            self.assertRegex(said, f'^FILE:6: collectors.simulated.{key}: .*"{bad}": no device "9"')

    def test_an_event_of_a_flag_is_not_the_files(self) -> None:
        self.write('collectors: {simulated: {enabled: true, events: ["hang 1 after 1s"]}}\n')
        said = run("--check-config", f"--config.file={self.file}", "--simulate-event=hang 9 after 1s")
        self.assertEqual(said.returncode, 2)
        self.assertTrue(said.stderr.startswith('gpumeter: --simulate-event: event "hang 9 after 1s"'), said.stderr)

    def test_a_plain_value_of_a_collector(self) -> None:
        self.assertEqual(self.check("collectors:\n  nvidia:\n    links: all\n"),
                         'FILE:3: collectors.nvidia.links: must be sum or each, not "all"\n')

    def test_users_that_do_not_exist(self) -> None:
        self.assertEqual(self.check("jobs:\n  users:\n    - root\n    - nosuchuser\n"),
                         'FILE:4: jobs.users: must be uids or existing user names; there is no user "nosuchuser"\n')
        self.assertIn("FILE:1: jobs.users: must be names or numbers from 0", self.check("jobs: {users: ['99999999999']}\n"))

    def test_one_round_shows_all(self) -> None:
        web = self.folder / "web.yml"
        web.write_text("basic_auth_users: {dave: x}\nrate_limit: {burst: many}\n")
        said = self.check(f"web: {{config_file: {web}}}\nlog: {{level: loud}}\nmetrics: {{include: [gpu_powr_watts]}}\njobs: {{users: [nosuchuser]}}\n"
                          "collectors: {nvidia: {links: all}, intel: {nosuch: 1}}\n")
        self.assertEqual([line.partition(": must")[0].partition(": no ")[0] for line in said.splitlines()],
                         ["FILE:2: log.level", "FILE:3: metrics.include", "FILE:4: jobs.users",
                          "FILE:5: collectors.intel.nosuch: unknown key; collectors.intel has enabled and ids_file", "FILE:5: collectors.nvidia.links",
                          f"{web}:1: basic_auth_users.dave: hashedSecret too short to be a bcrypted password", f"{web}:2: rate_limit.burst"])

    def test_one_path_for_both_sockets(self) -> None:
        self.assertEqual(self.check("jobs:\n  socket: /run/a\n  stream_socket: /run/a\n"),
                         'FILE:3: jobs.stream_socket: must not be the path of the other socket, "/run/a"\n')


@unittest.skipUnless(shutil.which("cc"), "there is no C compiler")
class NameServiceTest(Folder):
    def setUp(self) -> None:
        super().setUp()
        library = self.folder / "names.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, "-xc", "-"], input=NAME_SERVICE, text=True, check=True)
        self.fails = {"LD_PRELOAD": str(library)}
        self.hangs = self.fails | {"NAME_SERVICE_HANGS": "1"}

    def test_it_fails(self) -> None:
        self.write("jobs: {users: [somebody]}\n")
        said = run("--check-config", f"--config.file={self.file}", env=self.fails)
        self.assertEqual((said.returncode, said.stdout), (0, "the configuration is valid\n"), said.stderr)
        self.assertIn('the name service does not answer; whether user "somebody" exists is not checked', said.stderr)

    def test_it_hangs(self) -> None:
        """The daemon starts, reloads and ends all the same, and a second reload does not wait for it again."""
        self.write("jobs: {users: [somebody]}\n")
        with self.daemon(env=self.hangs) as daemon:
            for text in ("jobs: {users: [somebody]}\n", "jobs: {users: [somebody]}\nlog: {level: warn}\n"):
                self.write(text)
                started = time.monotonic()
                said = self.reload(daemon.process.pid)
                self.assertEqual(said.returncode, 0, said.stderr)
                print(f"a reload while the name service hangs: {time.monotonic() - started:.2f} s")
            self.assertIn('whether user \\"somebody\\" exists is not checked', daemon.log)
            code, seconds = daemon.stop()
            self.assertEqual((code, seconds < 5), (0, True))


if __name__ == "__main__":
    at_once.main()
