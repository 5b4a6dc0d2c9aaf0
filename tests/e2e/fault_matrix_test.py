#!/usr/bin/env python3
"""Four AMD cards with faults in every possible place of one card, in the disk, the log or a job's file: the effect on the page,
the other cards, the counters and the stop, and the time until everything is right again.

Each cell has its own daemon and its own mirror. FAULTS_ALL=1 runs the whole matrix; otherwise only the kinds of fault that
take different paths through the program.
"""
import concurrent.futures
import os
import signal
import sys
import time
import unittest
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

sys.path.insert(0, str(Path(__file__).resolve().parent))
import faulty  # noqa: E402
from harness import STOP, has_ended, wait_until  # noqa: E402
from fault_machine import (BUS, GPUS, IDENTITY, OTHERS, TARGET, Machine, Watch, address_of, data_of, files_of,  # noqa: E402
                           observed, series_of, value_of, without_index)

SKIPPED = 77
KINDS = ("hang", "EPERM", "EINVAL", "EIO", "empty")
FAULT = 7.0  # seconds: longer than a pass's deadline and than three passes
BUS_SCAN = 33.0  # the bus is looked at every 30 s
READY = 15.0
RIGHT_AGAIN = 10.0
AT_ONCE = 10  # cells; they wait more than they compute


@dataclass
class Place:
    name: str
    pattern: str
    at_start: bool
    follow: Callable = lambda machine, daemon, watch, cell: watch.through(FAULT)  # while it fails
    is_right: Callable = lambda machine, daemon, page: True  # in addition to complete series of the card
    kinds: tuple = ("hang", "EPERM", "EIO")
    keeps_index: bool = True  # except a card that was never seen and does not identify itself


@dataclass
class Cell:
    place: Place
    kind: str
    wrong: list = field(default_factory=list)
    ready: float = 0.0
    series: str = ""
    up: str = ""
    gap: float = 0.0
    slowest: float = 0.0
    right: "float | None" = None
    stop: float = 0.0

    def expect(self, true: bool, what: str) -> None:
        if not true:
            self.wrong.append(what)

    def row(self) -> str:
        right = "never" if self.right is None else f"{self.right:.1f}"
        return (f"{self.place.name:<12}{self.kind:<8}{self.ready:>6.1f}  {self.series:<14}{self.up:<8}{self.gap:>6.1f}"
                f"{self.slowest * 1e3:>8.0f}{right:>8}{self.stop:>6.1f}  {'; '.join(self.wrong) or 'ok'}")


HEAD = f"{'place':<12}{'fault':<8}{'ready':>6}  {'series':<14}{'gpu_up':<8}{'gap':>6}{'ms':>8}{'right':>8}{'stop':>6}"


def values_that_changed(values: list) -> list:
    return [value for place, value in enumerate(values) if place == 0 or value != values[place - 1]]


def follow_pass(machine, daemon, watch, cell) -> None:
    watch.through(FAULT)
    cell.expect(watch.up[-1] == 0, "gpu_up stays 1 though nothing can be read")
    cell.expect(watch.series[-1] <= 1, f"{watch.series[-1]} series stay")


def follow_attach(machine, daemon, watch, cell) -> None:
    """EINVAL and an empty read mean that the card has no such value; the others mean that it cannot be read."""
    watch.through(FAULT) if cell.kind in ("EINVAL", "empty") else follow_pass(machine, daemon, watch, cell)


def follow_discovery(machine, daemon, watch, cell) -> None:
    watch.through(FAULT)
    cell.expect(cell.kind != "hang" or address_of(TARGET) in daemon.log, "the log does not name the card")


def follow_bus_scan(machine, daemon, watch, cell) -> None:
    watch.through(BUS_SCAN if cell.kind in ("hang", "EPERM") else FAULT)
    on_bus = daemon.page().one("gpumeter_pci_devices", vendor="amd")
    cell.expect(on_bus == len(GPUS), f"gpumeter_pci_devices is {on_bus}")
    cell.expect(set(watch.up) == {1}, "the card is not read")


def follow_log(machine, daemon, watch, cell) -> None:
    for _ in range(3):
        daemon.send(signal.SIGHUP)
        watch.through(FAULT / 3)
    cell.expect(set(watch.up) == {1}, "the card is not read")


def is_logged(machine, daemon, page) -> bool:
    size = machine.log.stat().st_size
    daemon.send(signal.SIGHUP)
    time.sleep(0.3)
    return machine.log.stat().st_size > size


def follow_mllog(machine, daemon, watch, cell) -> None:
    machine.logs_mllog("run_start", "null")
    machine.tell("ml.steps:1|c|#run:other")
    steps = watch.until(lambda page: page.one("ml_steps_total", run="other", split="train") == 1, FAULT)
    cell.expect(steps is not None, "another job's message is not taken in")
    watch.through(3)


def is_mllog_read(machine, daemon, page) -> bool:
    machine.logs_mllog("eval_accuracy", 0.5)
    return 0.5 in page.of("ml_eval_value", run="bert").values()


def is_saved(machine, daemon, page) -> bool:
    state = machine.faults.backing / "state/devices.json"
    return state.exists() and state.read_text().count('"uuid"') == len(GPUS)


PLACES = (
    Place("attach", data_of(TARGET), True, follow_attach, kinds=KINDS),
    Place("discovery", files_of(TARGET, f"({IDENTITY})$"), True, follow_discovery),
    Place("vbios", files_of(TARGET, "vbios_version$"), True, follow_discovery, kinds=("hang",)),
    Place("bus start", files_of(TARGET, f"({BUS})$"), True, keeps_index=False),
    Place("bus scan", files_of(TARGET, f"({BUS})$"), False, follow_bus_scan),
    Place("pass", data_of(TARGET), False, follow_pass, kinds=KINDS),
    Place("one file", files_of(TARGET, "gpu_busy_percent$"), False, kinds=("EPERM", "EINVAL", "EIO", "empty")),
    Place("state start", r"^/state/", True, is_right=is_saved),
    Place("state", r"^/state/", False, is_right=is_saved),
    Place("log", r"^/logs/", False, follow_log, is_logged),
    Place("mllog", r"^/jobs/", False, follow_mllog, is_mllog_read),
)


# A write is never empty, and an empty unique_id is what a card without one has.
NO_FAULT = {("log", "empty"), ("discovery", "empty")}


def whole_page() -> set:
    """The failing card's series where nothing fails."""
    with Machine() as machine, machine.daemon() as daemon:
        daemon.wait_ready()
        return series_of(daemon.page(), TARGET)


class Trial:
    """One cell, from a start to a stop."""

    def __init__(self, cell: Cell, whole: set):
        self.cell, self.whole = cell, whole

    def run(self) -> Cell:
        try:
            with Machine() as machine:
                self._on(machine)
        except Exception as error:  # noqa: BLE001: whatever went wrong is this cell's result
            self.cell.wrong.append(f"{type(error).__name__}: {str(error).partition(chr(10))[0]}")
        print(self.cell.row(), flush=True)
        return self.cell

    def _on(self, machine: Machine) -> None:
        place, cell = self.cell.place, self.cell
        if place.at_start:
            machine.faults.fail(cell.kind, place.pattern)
        with machine.daemon() as daemon:
            try:
                self._with(machine, daemon)
            finally:
                machine.faults.heal()  # else the process cannot end, killed or not

    def _with(self, machine: Machine, daemon) -> None:
        place, cell = self.cell.place, self.cell
        started = time.monotonic()
        daemon.wait_ready(READY)
        cell.ready = time.monotonic() - started
        watch = Watch(daemon)
        if not place.at_start:
            watch.until(lambda page: (observed(page, TARGET) or 0) > 1, 15)
            machine.faults.fail(cell.kind, place.pattern)
        place.follow(machine, daemon, watch, cell)
        self._heal(machine, daemon, watch)
        self._judge(watch)
        machine.faults.fail(cell.kind, place.pattern)
        time.sleep(1.5)
        self._stop(machine, daemon)

    def _stop(self, machine: Machine, daemon) -> None:
        asked = time.monotonic()
        daemon.send(signal.SIGTERM)
        wait_until(lambda: has_ended(daemon.process), "the daemon ends", STOP + 5)
        self.cell.stop = time.monotonic() - asked
        machine.faults.heal()
        code = daemon.process.wait(10)
        self.cell.expect(code == 0 and self.cell.stop < STOP, f"exit {code} after {self.cell.stop:.1f} s")

    def _heal(self, machine: Machine, daemon, watch: Watch) -> None:
        place, cell = self.cell.place, self.cell
        unread = [gpu for gpu in OTHERS if watch.moved.get(gpu, (None,))[0] is None]
        cell.expect(not unread, f"the other cards {unread} were never read")
        changed = values_that_changed(watch.series)
        cell.series = ">".join(map(str, [changed[0], min(changed), changed[-1]]))
        cell.up = ">".join("-" if up is None else str(int(up)) for up in values_that_changed(watch.up))[:7]
        machine.faults.heal()
        cell.right = watch.until(lambda page: value_of(page, TARGET, "gpu_up") == 1 and self._is_whole(page)
                                 and place.is_right(machine, daemon, page), RIGHT_AGAIN + 10)
        cell.expect(cell.right is not None and cell.right <= RIGHT_AGAIN, "not right again in time")
        if cell.right is None:
            there = series_of(watch.look(), TARGET)
            cell.wrong.append(f"{len(self.whole - there)} series missing, {len(there - self.whole)} new")

    def _is_whole(self, page) -> bool:
        there = series_of(page, TARGET)
        if self.cell.place.keeps_index:
            return there == self.whole
        return without_index(there) == without_index(self.whole)

    def _judge(self, watch: Watch) -> None:
        cell = self.cell
        cell.gap, cell.slowest = watch.gap, watch.slowest
        watch.through(2)
        cell.expect(cell.gap < FAULT - 1, "the other cards are not read")
        cell.expect(cell.slowest < FAULT - 1, "a scrape waits")
        cell.expect(not watch.frozen, f"{len(watch.frozen)} times off observed time, as {watch.frozen[:1]}")


class FaultMatrixTest(unittest.TestCase):
    def test_every_fault_in_every_place(self):
        whole = whole_page()
        self.assertGreater(len(whole), 100)
        every = os.environ.get("FAULTS_ALL") == "1"
        only = os.environ.get("FAULTS_ONLY", "")
        cells = [Cell(place, kind) for place in PLACES for kind in KINDS
                 if (every or kind in place.kinds) and only in f"{place.name} {kind}" and (place.name, kind) not in NO_FAULT]
        cells.sort(key=lambda cell: cell.kind != "hang")  # the longest first
        print(f"{len(whole)} series of the card where nothing fails; others: {', '.join(OTHERS)}\n{HEAD}", flush=True)
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            done = list(pool.map(lambda cell: Trial(cell, whole).run(), cells))
        for cell in done:
            with self.subTest(place=cell.place.name, fault=cell.kind):
                self.assertEqual(cell.wrong, [])


if __name__ == "__main__":
    why = faulty.missing()
    if why:
        print(f"skipped: {why}")
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)
