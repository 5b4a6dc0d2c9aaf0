#!/usr/bin/env python3
"""A file that never answers, under each part in turn and under all of them: that part's series leave the page, and the scrapes, the
devices, the other parts and the stop go on. Requires root and FUSE, and reports that it is skipped without them."""
from __future__ import annotations

import os
import signal
import sys
import time
import unittest

import at_once
from faulty import Faulty, missing
from harness import ROOT, STOP, Daemon, Page, has_ended, wait_until

sys.path.insert(0, str(ROOT / "tests/fixtures"))
from card_tree import CARDS, lay  # noqa: E402

PARTS = {  # part: what fails, and the files that it reads in each turn
    "host": ("hang", r"^/proc/pressure/memory$"),
    "allocations": ("hang", r"^/slurm"),
    "kubernetes": ("getattr:hang", r"^/logs"),
    "pages": ("getattr:hang", r"^/pages"),
    "power": ("hang", r"^/proc/stat$"),
    "containers": ("getattr:hang", r"^/containers$"),  # asked for each new container
    "environment": ("hang", r"^/proc/\d+/environ$"),  # of each new process
}
WITHOUT_FILES = {"health", "history", "workloads", "kernel"}  # they read the store, and a log whose reads never block
SECONDS = 2.0  # of a scrape, and between two values of the device


@unittest.skipIf(missing(), missing())
class HungParts(unittest.TestCase):
    def setUp(self) -> None:
        self.tree = self.enterContext(Faulty())
        folder = self.tree.backing
        lay(folder / "sys", CARDS / "radeon_rx.card")
        for name in ("proc/pressure", "pages", "slurm", "logs/pods/ml_bert-0_uid-1"):
            (folder / name).mkdir(parents=True)
        for resource in ("memory", "io"):
            (folder / "proc/pressure" / resource).write_text("some avg10=0.00 avg60=0.00 avg300=0.00 total=4000000\n")
        (folder / "proc/stat").write_text("cpu  1 1 1 1 1 1 1 1 0 0\n")
        (folder / "slurm/7").touch()
        self.pids = 100
        self.arrive()
        (folder / "pages/a.prom").write_text("a 1\n")
        (folder / "containers").write_text("[]")
        (folder / "gpumeter.yaml").write_text(f"collectors: {{nvidia: {{enabled: false}}, simulated: {{enabled: true, devices: 1, processes: ['0={folder}/pids']}}}}\nworkloads: {{environment: [PROJECT]}}\njobs: {{enabled: false}}\nmachine: {{workload_energy: true}}\nallocations: {{slurm: {self.tree.root}/slurm}}\npages: {{folders: [{self.tree.root}/pages]}}\n"
                                              f"containers: {{sources: [{self.tree.root}/containers]}}\nkubernetes: {{enabled: true, pods_socket: '', pod_resources_socket: '', log_path: {self.tree.root}/logs}}\n")

    def arrive(self) -> None:
        """A container with a process on the simulated GPU."""
        self.pids += 1
        own = self.tree.backing / f"proc/{self.pids}"
        own.mkdir()
        (own / "stat").write_text(f"{self.pids} (a) S " + "1 " * 49 + "\n")
        (own / "cgroup").write_text(f"0::/system.slice/docker-{self.pids:064x}.scope\n")
        (own / "environ").write_bytes(b"PROJECT=bert\0")
        (self.tree.backing / "pids").write_text(f"{self.pids}\n")

    def daemon(self) -> Daemon:
        # LeakSanitizer would stop all threads at the end, and wait for those that hang in the kernel.
        return Daemon(f"--path.sysfs={self.tree.backing}/sys", f"--path.procfs={self.tree.root}/proc",
                      f"--config.file={self.tree.backing}/gpumeter.yaml", wait=False, env={"ASAN_OPTIONS": "detect_leaks=0"})

    def look(self, daemon: Daemon) -> Page:
        """The page, which comes at once, with a device that is read."""
        asked = time.monotonic()
        page = daemon.page()
        self.assertLess(time.monotonic() - asked, SECONDS)
        self.assertEqual(page.one("gpu_up", gpu="0"), 1)
        observed = page.one("gpu_observed_seconds_total", gpu="0", tier="fast")
        now = time.monotonic()
        if observed != self.observed:
            self.observed, self.moved = observed, now
        self.assertLess(now - self.moved, SECONDS + 1)
        return page

    def until(self, daemon: Daemon, down: set[str]) -> Page:
        """The page on which these parts, and no others, are down."""
        def shown() -> Page | None:
            page = self.look(daemon)
            return page if {dict(labels)["part"] for (_, labels), value in page.of("gpumeter_part_up").items() if value == 0} == down else None
        return wait_until(shown, f"{sorted(down) or 'none'} down", 60, every=0.2)

    def test_a_file_that_hangs_under_each_part_costs_that_part_alone(self) -> None:
        daemon = self.daemon()
        try:
            daemon.wait_ready()
            self.observed, self.moved = None, time.monotonic()
            page = self.until(daemon, set())
            parts = {dict(labels)["part"] for _, labels in page.of("gpumeter_part_up")}
            self.assertEqual(parts, set(PARTS) | WITHOUT_FILES, "a part without a row in this test")
            self.assertEqual(page.one("gpu_host_pressure_seconds_total", resource="memory", waiting="some"), 4)
            for part, fault in PARTS.items():
                self.tree.fail(*fault)
                self.arrive()
                page = self.until(daemon, {part})
                self.assertEqual(page.one("gpu_host_pressure_seconds_total", resource="memory", waiting="some"), None if part == "host" else 4)
                self.tree.heal()
                self.until(daemon, set())
                self.assertIn(f'msg="a part answers again" part={part} ', daemon.log)
            for fault in PARTS.values():
                self.tree.fail(*fault)
            self.arrive()
            self.until(daemon, set(PARTS))
            asked = time.monotonic()
            daemon.send(signal.SIGTERM)
            wait_until(lambda: has_ended(daemon.process), "the daemon has ended", 20)
            took = time.monotonic() - asked
            print(f"{len(PARTS)} parts hang: SIGTERM to exit {took:.2f} s")
            self.assertLess(took, STOP)
        finally:
            self.tree.heal()
            daemon.__exit__()


if __name__ == "__main__":
    at_once.main()
