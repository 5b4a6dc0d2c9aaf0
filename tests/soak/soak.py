#!/usr/bin/env python3
"""A long run: eight simulated GPUs with random failures, four scrapers in both formats, a browser, runs that come and go, reloads.

Usage: soak.py [MINUTES [SEED]]        (1 minute; ./dev soak MINUTES)

Counters never decrease, threads and descriptors return to their number, each error in the log has a failure that explains it,
SIGTERM ends the daemon with exit 0, and memory does not grow. The curve is in build/soak/MINUTES.csv, the log beside it. The growth
is judged over the second half of a soak of at least 20 minutes: until then the tables of runs and workloads fill.
"""
from __future__ import annotations

import random
import re
import signal
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "e2e")]
import memory  # noqa: E402
from harness import ROOT, Daemon, is_sanitized  # noqa: E402
from load import Load  # noqa: E402
from machine import ABSENT, Configuration  # noqa: E402

MOST_KIB_A_MINUTE = 12  # the history of eight GPUs grows by 2
JUDGED_MINUTES = 20
WARM_UP_SECONDS = 10  # threads that start when needed are there from then on
QUIET_SECONDS = 5
MOST_SHOWN = 50


class Soak:
    def __init__(self, minutes: float, seed: int, stack: ExitStack) -> None:
        self.minutes, dice = minutes, random.Random(seed)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gpumeter-soak-")))
        folder.chmod(0o755)
        (folder / "proc").mkdir()
        configuration = Configuration(folder, dice)
        configuration.write()
        self.curve_path = ROOT / f"build/soak/{minutes:g}.csv"
        self.curve_path.parent.mkdir(parents=True, exist_ok=True)
        self.daemon = stack.enter_context(Daemon(f"--config.file={configuration.path}", log=self.curve_path.with_suffix(".log")))
        self.load = Load(self.daemon, configuration, dice, stack)
        self.findings = self.load.findings

    def run(self) -> list[str]:
        self.load.start()
        time.sleep(WARM_UP_SECONDS)
        self.load.stop()
        before = self.at_rest()
        samples = self.loaded()
        self.check_rest(before, self.at_rest())
        self.check_memory(samples)
        status, seconds = self.daemon.stop()
        if status != 0:
            self.findings.append(f"exit status {status}")
        self.check_log()
        self.print_summary(seconds)
        return self.findings

    def loaded(self) -> list[memory.Sample]:
        curve = memory.Curve(self.daemon.process.pid, self.curve_path, max(1.0, self.minutes / 12))
        curve.start()
        self.load.start()
        self.load.run(60 * self.minutes)
        curve.stop()
        self.load.stop()
        return curve.samples

    def at_rest(self) -> dict[str, int]:
        """Threads by name, and descriptors, without a client, a job and a failure."""
        time.sleep(QUIET_SECONDS)
        folder = Path(f"/proc/{self.daemon.process.pid}")
        counts = {"descriptors": len(list((folder / "fd").iterdir()))}
        for task in (folder / "task").iterdir():
            name = (task / "comm").read_text().strip()
            counts[name] = counts.get(name, 0) + 1
        return counts

    def check_rest(self, before: dict[str, int], after: dict[str, int]) -> None:
        print(f"threads and descriptors at rest: {after}")
        if before != after:
            self.findings.append(f"threads or descriptors: {before} before, {after} after")

    def check_memory(self, samples: list[memory.Sample]) -> None:
        growth = memory.slope(samples[len(samples) // 2:])
        print(*memory.lines(samples), sep="\n")
        is_judged = self.minutes >= JUDGED_MINUTES and not is_sanitized()
        print(f"anonymous memory: {growth:+.1f} KiB a minute over the second half; " +
              (f"limit {MOST_KIB_A_MINUTE}" if is_judged else f"judged from {JUDGED_MINUTES} minutes on, without sanitizers"))
        if is_judged and growth > MOST_KIB_A_MINUTE:
            self.findings.append(f"memory grows by {growth:.1f} KiB a minute")

    def check_log(self) -> None:
        absent = {int(event.split()[1]) for event in self.load.events if event.split()[0] in ABSENT}
        rejected = 0
        for line in self.daemon.log.splitlines():
            gpu = re.search(r" gpu=(\d+)", line)
            if " level=error " not in line and not line.startswith("==") and "runtime error" not in line:
                continue
            if "configuration not reloaded" in line:
                rejected += 1
            elif not (gpu and int(gpu[1]) in absent):
                self.findings.append(f"log: {line}")
        if rejected != self.load.spoiled:
            self.findings.append(f"{rejected} reloads were rejected, {self.load.spoiled} files were bad")

    def print_summary(self, stop_seconds: float) -> None:
        load = self.load
        print(f"{sum(s.answers for s in load.scrapers)} pages of up to {max(s.size for s in load.scrapers) / 1024:.0f} KiB, "
              f"{sum(s.monotonic.compared for s in load.scrapers)} counters compared; {load.runs} runs; {len(load.events)} failures; "
              f"{load.reloads} reloads, {load.spoiled} of bad files, {load.renewals} with other devices; "
              f"SIGTERM to exit {stop_seconds:.1f} s; curve: {self.curve_path}")
        for finding in self.findings[:MOST_SHOWN]:
            print(f"finding: {finding}")


def main() -> int:
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 30)
    print(f"seed {seed}", flush=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("soak: stopped"))
    with ExitStack() as stack:
        findings = Soak(minutes, seed, stack).run()
    print(f"soak: {len(findings)} findings" if findings else "soak: passed")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
