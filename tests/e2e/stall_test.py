#!/usr/bin/env python3
"""Hangs outside of a lane (the PCI bus, a discovery, a log of MLPerf), threads that the kernel refuses, and reloads while
a card hangs: the port, the page, readiness and the stop still work. Parts that need FUSE or root report that they are skipped."""
from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import at_once
from faulty import Faulty, missing
from harness import ROOT, STOP, Daemon, has_ended, wait_until
from jobs import Folder, shown

sys.path.insert(0, str(ROOT / "tests/fixtures"))
from card_tree import CARDS, lay  # noqa: E402

USER = 54321  # no process has this uid
MLLOG = ':::MLLOG {"key": "run_start", "value": null, "time_ms": 1600000000000, "metadata": {}}\n'


def tasks(daemon: Daemon) -> list[str]:
    folder = Path(f"/proc/{daemon.process.pid}/task")
    return sorted((task / "comm").read_text().strip() for task in folder.iterdir())


def descriptors(daemon: Daemon) -> int:
    return len(os.listdir(f"/proc/{daemon.process.pid}/fd"))


@unittest.skipIf(missing(), missing())
class HungFiles(unittest.TestCase):
    def setUp(self) -> None:
        self.tree = self.enterContext(Faulty())
        self.folder = self.tree.backing
        lay(self.folder / "sys", CARDS / "radeon_rx.card")
        self.config = self.folder / "gpumeter.yaml"
        self.config.write_text("collectors: {nvidia: {enabled: false}}\n")
        (card,) = (self.folder / "sys/bus/pci/devices").iterdir()
        self.uevent = f"/{card.name}/uevent$"
        self.address = card.name

    @contextlib.contextmanager
    def releasing(self, daemon: Daemon):
        """All is answered before the end."""
        try:
            daemon.wait_ready()
            yield daemon
        finally:
            self.tree.heal()
            daemon.__exit__()

    def daemon(self):
        # LeakSanitizer would stop all threads at the end, and wait for the one that hangs in the kernel.
        return self.releasing(Daemon(f"--path.sysfs={self.tree.root}/sys", f"--config.file={self.config}", wait=False,
                                     env={"ASAN_OPTIONS": "detect_leaks=0"}))

    def stop(self, daemon: Daemon) -> float:
        """Seconds from SIGTERM to the end of all threads but those that hang."""
        asked = time.monotonic()
        daemon.send(signal.SIGTERM)
        wait_until(lambda: has_ended(daemon.process), "the daemon has ended", 20)
        took = time.monotonic() - asked
        self.tree.heal()
        self.assertEqual(daemon.process.wait(20), 0, daemon.log)
        self.assertLess(took, STOP)
        return took

    def test_a_uevent_that_hangs_at_the_start(self) -> None:
        self.tree.fail("hang", self.uevent)
        with self.daemon() as daemon:
            took = time.monotonic() - daemon.started
            self.assertLess(took, 8, daemon.log)
            self.assertEqual(daemon.fetch("/metrics").status, 200)
            wait_until(lambda: "a PCI function does not answer" in daemon.log, "the log names the function", 10)
            self.assertIn(self.address, daemon.log)
            seconds = self.stop(daemon)
            print(f"uevent hangs from the start: ready after {took:.1f} s; SIGTERM to exit {seconds:.2f} s")

    def test_a_uevent_that_hangs_while_it_runs(self) -> None:
        with self.daemon() as daemon:
            wait_until(lambda: daemon.page().one("gpumeter_pci_devices", vendor="amd") == 1, "the bus shows the card", 20)
            self.tree.fail("hang", self.uevent)
            daemon.send(signal.SIGHUP)  # looks at the bus at once
            wait_until(lambda: "a PCI function does not answer" in daemon.log, "the log names the function", 20)
            for _ in range(20):
                asked = time.monotonic()
                self.assertEqual(daemon.fetch("/metrics?collect[]=amd", timeout=5).status, 200)
                self.assertLess(time.monotonic() - asked, 2)
            page = daemon.page()
            self.assertEqual(page.one("gpumeter_pci_devices", vendor="amd"), 1)  # the bus lists it still
            self.tree.heal()
            daemon.send(signal.SIGHUP)
            wait_until(lambda: "a PCI function answers again" in daemon.log, "the log says that it is over", 20)
            self.tree.fail("hang", self.uevent)
            daemon.send(signal.SIGHUP)
            time.sleep(0.5)
            self.stop(daemon)

    def test_a_card_that_hangs_holds_one_thread_however_often_its_collector_is_opened(self) -> None:
        self.tree.fail("hang", f"/{self.address}/unique_id$")
        with self.daemon() as daemon:
            seen = [self.left_behind(daemon)]
            for _ in range(3):
                daemon.send(signal.SIGUSR1)
                wait_until(lambda: daemon.page().one("gpumeter_collector_released", collector="amd") == 1, "the drivers are closed", 20)
                daemon.send(signal.SIGUSR2)
                wait_until(lambda: daemon.page().one("gpumeter_collector_released", collector="amd") == 0, "the drivers are opened", 20)
                seen.append(self.left_behind(daemon))
            for reload in range(1, 4):
                self.config.write_text(f"collectors: {{nvidia: {{enabled: false}}, amd: {{ids_file: /nowhere/{reload}}}}}\n")
                daemon.send(signal.SIGHUP)
                wait_until(lambda: daemon.log.count("configuration reloaded") == reload, "a reload", 20)
                seen.append(self.left_behind(daemon))
            print(f"threads left behind at a card after each opening: {seen}")
            self.assertEqual(set(seen), {1})
            self.tree.heal()
            daemon.send(signal.SIGHUP)
            wait_until(lambda: daemon.page().one("gpu_up", gpu="0") == 1, "the card is read", 20)
            self.assertEqual(daemon.stop()[0], 0, daemon.log)

    def left_behind(self, daemon: Daemon) -> int:
        time.sleep(1.5)  # a call is left behind after 0.5 s
        return tasks(daemon).count("find-amd-card")

    def test_a_log_of_mlperf_that_hangs(self) -> None:
        for name in ("hangs", "works"):
            (self.folder / name).write_text(MLLOG)
        self.tree.fail("hang", "^/hangs$")
        with Folder() as folder:
            folder.configure(f'  mllog: ["bert={self.tree.root}/hangs", "gpt={self.tree.root}/works"]\n')
            with self.releasing(folder.daemon(wait=False)) as daemon:
                shown(daemon, {'ml_run_start_timestamp_seconds{run="gpt"}': 1.6e9})
                folder.send("ml.steps:3|c|#run:a")
                shown(daemon, {'ml_steps_total{run="a"}': 3})
                wait_until(lambda: "a read of the file does not return" in daemon.log, "the log names the file", 30)
                self.tree.heal()
                shown(daemon, {'ml_run_start_timestamp_seconds{run="bert"}': 1.6e9})
                self.tree.fail("hang", "^/hangs$")
                time.sleep(1.2)  # the next read hangs again
                self.stop(daemon)


class Reloads(unittest.TestCase):
    def test_a_card_that_hangs_holds_one_thread_however_many_reloads(self) -> None:
        with tempfile.TemporaryDirectory(prefix="gpumeter-stall-") as folder:
            config = Path(folder, "gpumeter.yaml")

            def configure(period: int) -> None:
                config.write_text("collectors: {amd: {enabled: false}, nvidia: {enabled: false}, simulated: {enabled: true, "
                                  f'devices: 2, period: {period}s, events: ["hang 1 after 0s"]}}}}\n')

            configure(10)
            with Daemon(f"--config.file={config}") as daemon:
                wait_until(lambda: daemon.page().one("gpu_up", gpu="1") == 0, "the card hangs", 20)
                seen = []
                for period in range(11, 14):
                    configure(period)
                    daemon.send(signal.SIGHUP)
                    wait_until(lambda: daemon.log.count("configuration reloaded") == period - 10, "a reload", 20)
                    wait_until(lambda: daemon.page().one("gpu_up", gpu="0") == 1, "the other card is read", 20)
                    time.sleep(1)
                    self.assertEqual(daemon.page().one("gpu_up", gpu="1"), 0)
                    seen.append((len(tasks(daemon)), descriptors(daemon)))
                    self.assertEqual(tasks(daemon).count("lane-1"), 1, tasks(daemon))
                self.assertEqual(len({threads for threads, _ in seen}), 1, seen)
                print(f"threads and descriptors after each reload: {seen}")
                code, seconds = daemon.stop()
                self.assertEqual(code, 0, daemon.log)
                self.assertLess(seconds, STOP)


@unittest.skipUnless(os.geteuid() == 0, "limits of another user take root")
class FewThreads(unittest.TestCase):
    GPUS = 8
    AS_USER = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]

    def setUp(self) -> None:
        folder = self.enterContext(tempfile.TemporaryDirectory(prefix="gpumeter-stall-"))
        os.chmod(folder, 0o777)
        self.state, self.config = folder, Path(folder, "gpumeter.yaml")
        self.config.write_text("jobs: {enabled: false}\n")

    def daemon(self, gpus: int, *limit: str) -> Daemon:
        wrap = [*self.AS_USER, *limit]
        return Daemon(f"--simulate={gpus}", f"--config.file={self.config}", state=self.state, wrap=wrap)

    def test_lanes_that_get_no_thread_get_it_once_the_limit_is_lifted(self) -> None:
        with self.daemon(1) as daemon:
            limit = len(tasks(daemon)) - 1 + self.GPUS - 3
        with self.daemon(self.GPUS, "prlimit", f"--nproc={limit}:") as daemon:
            page = wait_until(lambda: len((p := daemon.page()).of("gpu_up")) == self.GPUS and p, "all cards are known", 20)
            down = [k for k, v in page.of("gpu_up").items() if v == 0]
            self.assertGreaterEqual(len(down), 1, tasks(daemon))
            self.assertIn("cannot start the thread lane-", daemon.log)
            lift = ["prlimit", f"--pid={daemon.process.pid}", f"--nproc={limit + self.GPUS}:"]
            subprocess.run([*self.AS_USER, *lift], check=True, timeout=20)
            lifted = time.monotonic()
            wait_until(lambda: sum(daemon.page().of("gpu_up").values()) == self.GPUS, "all cards are read", 20)
            took = time.monotonic() - lifted
            self.assertLess(took, 10)
            self.assertEqual(daemon.stop()[0], 0)
            print(f"{self.GPUS - len(down)} of {self.GPUS} cards read under a limit of {limit} threads; all {took:.1f} s after it")


if __name__ == "__main__":
    at_once.main()
