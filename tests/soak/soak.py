#!/usr/bin/env python3
"""A long run: eight simulated GPUs with random failures, four scrapers in both formats, a browser, runs that come and go, reloads.

Usage: soak.py [MINUTES [SEED]]        (1 minute; ./dev soak MINUTES)

Counters never decrease, threads and descriptors return to their number, each error in the log has a failure that explains it,
SIGTERM ends the daemon with exit 0, and memory does not grow. The curve is in build/soak/MINUTES.csv. A growth is judged over the
second half of a run of at least 20 minutes: before that the tables of the runs fill.
"""
from __future__ import annotations

import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "e2e")]
import memory  # noqa: E402
from clients import FORMATS, Browser, Client, Scraper  # noqa: E402
from harness import ROOT, Daemon, wait_until  # noqa: E402
from machine import ABSENT, Configuration  # noqa: E402

RUNS_A_SECOND = 1.0
RELOAD_SECONDS = 15
MOST_KIB_A_MINUTE = 12  # the history of eight GPUs grows by 2
JUDGED_MINUTES = 20
QUIET_SECONDS = 5


class Soak:
    def __init__(self, minutes: float, seed: int, stack: ExitStack) -> None:
        self.seconds, self._seed, self._dice = 60 * minutes, seed, random.Random(seed)
        self.folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gpumeter-soak-")))
        self.folder.chmod(0o755)
        (self.folder / "proc").mkdir()
        self.configuration = Configuration(self.folder, self._dice)
        self.configuration.write()
        self.events: list[str] = []
        self.spoiled = self.reloads = self.renewals = self.runs = 0
        self.findings: list[str] = []
        self._stack = stack
        self.out = ROOT / f"build/soak/{minutes:g}"
        self.out.parent.mkdir(parents=True, exist_ok=True)
        self.daemon = stack.enter_context(Daemon(f"--config.file={self.configuration.path}", log=self.out.with_suffix(".log")))
        self.clients: list[Client] = []
        self.scrapers: list[Scraper] = []

    def fail(self, finding: str) -> None:
        self.findings.append(finding)
        print(f"FINDING {finding}", flush=True)

    # The load.

    def start_load(self) -> None:
        self.scrapers = [Scraper(self.daemon.port, *form) for form in FORMATS]
        self.clients = [*self.scrapers, Browser(self.daemon.port)]
        for client in self.clients:
            client.start()
        command = [sys.executable, "-B", str(HERE / "jobs.py"), str(self.folder), str(RUNS_A_SECOND), str(self._dice.randrange(1 << 30))]
        self._jobs = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self._stack.callback(self._jobs.kill)

    def stop_load(self) -> None:
        for client in self.clients:
            client.stop()
        self._jobs.terminate()
        self.runs += int(self._jobs.communicate(timeout=60)[0])
        for scraper in self.scrapers:
            self.findings += scraper.monotonic.findings
        for client in self.clients:
            self.findings += client.findings

    def reload(self, write, *arguments: float, is_good: bool = True) -> None:
        write(*arguments)
        self.reloads += 1
        before = self.outcome()
        self.daemon.send(signal.SIGHUP)
        try:
            wait_until(lambda: self.outcome() != before, "the daemon has reloaded", 30, every=0.2)
        except AssertionError as error:
            self.fail(f"{error}: {'good' if is_good else 'bad'} file")

    def outcome(self) -> tuple:
        page = self.daemon.page()
        return tuple(page.one(f"gpumeter_config_last_reload_{name}") for name in ("successful", "success_timestamp_seconds"))

    def renew(self, seconds: float) -> None:
        """The collector starts again, so its counters do too."""
        self.renewals += 1
        for scraper in self.scrapers:
            scraper.monotonic.permit_resets("gpu_")
        self.reload(self.configuration.renew, seconds)
        self.events += self.configuration.events
        for scraper in self.scrapers:
            scraper.monotonic.permit_resets("gpu_")

    def run_load(self, seconds: float) -> None:
        """Reloads every quarter of a minute: mostly a change, now and then a bad file, and new devices ten times in all."""
        end = time.monotonic() + seconds
        part = max(60.0, seconds / 10)
        while (left := end - time.monotonic()) > 25:
            self.renew(min(part, left))
            part_end = time.monotonic() + min(part, left)
            while part_end - time.monotonic() > RELOAD_SECONDS + 10:
                time.sleep(RELOAD_SECONDS)
                self.change()
            time.sleep(max(0, part_end - time.monotonic()))

    def change(self) -> None:
        if self._dice.random() < 0.2:
            self.spoiled += 1
            self.reload(self.configuration.spoil, is_good=False)
        self.reload(self.configuration.change)

    # The judgement.

    def quiet(self) -> dict[str, int]:
        """Threads by name, and descriptors, without a client, a job and a failure."""
        time.sleep(QUIET_SECONDS)
        folder = Path(f"/proc/{self.daemon.process.pid}")
        counts: dict[str, int] = {"descriptors": len(list((folder / "fd").iterdir()))}
        for task in (folder / "task").iterdir():
            name = (task / "comm").read_text().strip()
            counts[name] = counts.get(name, 0) + 1
        return counts

    def check_log(self) -> None:
        absent = {int(event.split()[1]) for event in self.events if event.split()[0] in ABSENT}
        rejected = 0
        for line in self.daemon.log.splitlines():
            if " level=error " not in line:
                continue
            gpu = re.search(r" gpu=(\d+)", line)
            if "configuration not reloaded" in line:
                rejected += 1
            elif not (gpu and int(gpu[1]) in absent):
                self.fail(f"log: {line}")
        if rejected != self.spoiled:
            self.fail(f"{rejected} reloads were rejected, {self.spoiled} files were bad")

    def check_memory(self, samples: list[memory.Sample]) -> None:
        half = samples[len(samples) // 2:]
        growth = memory.slope(half)
        print(*memory.lines(samples), sep="\n")
        print(f"anonymous memory: {growth:+.1f} KiB a minute over the second half; limit {MOST_KIB_A_MINUTE} from {JUDGED_MINUTES} minutes on")
        if self.seconds >= 60 * JUDGED_MINUTES and growth > MOST_KIB_A_MINUTE:
            self.fail(f"memory grows by {growth:.1f} KiB a minute")

    def check_quiet(self, before: dict[str, int], after: dict[str, int]) -> None:
        print(f"threads and descriptors at rest: {after}")
        if before != after:
            self.fail(f"threads or descriptors: {before} before, {after} after")

    def run(self) -> int:
        print(f"seed {self._seed}, log {self.daemon.log_path}", flush=True)
        path = self.out.with_suffix(".csv")
        self.start_load()  # threads that start when needed are there from now on
        time.sleep(10)
        self.stop_load()
        before = self.quiet()
        curve = memory.Curve(self.daemon.process.pid, path, max(1.0, self.seconds / 720))
        curve.start()
        self.start_load()
        self.run_load(self.seconds)
        curve.stop()
        self.stop_load()
        self.check_quiet(before, self.quiet())
        self.check_memory(curve.samples)
        status, seconds = self.daemon.stop()
        if status != 0:
            self.fail(f"exit status {status}")
        self.check_log()
        self.summary(path, seconds)
        return 1 if self.findings else 0

    def summary(self, path: Path, seconds: float) -> None:
        pages = sum(scraper.answers for scraper in self.scrapers)
        compared = sum(scraper.monotonic.compared for scraper in self.scrapers)
        print(f"{pages} pages of up to {max(s.size for s in self.scrapers) / 1024:.0f} KiB, {compared} counters compared; {self.runs} runs; "
              f"{len(self.events)} failures; {self.reloads} reloads, {self.spoiled} of bad files, {self.renewals} with other devices; "
              f"SIGTERM to exit {seconds:.1f} s; curve: {path}")
        for finding in self.findings[:50]:
            print(f"finding: {finding}")
        print("soak: " + (f"{len(self.findings)} findings" if self.findings else "passed"))


def main() -> int:
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 30)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("soak: stopped"))
    with ExitStack() as stack:
        return Soak(minutes, seed, stack).run()


if __name__ == "__main__":
    sys.exit(main())
