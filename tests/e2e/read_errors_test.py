#!/usr/bin/env python3
"""Cards whose files fail for a moment, in part, or in several ways at once: the page names the card, counters stay
exact over the observed time, and failed sources are bound again. For complete failures and hangs see fault_matrix_test.py.
Skipped without root, /dev/fuse and python3-fusepy."""
import sys
import time
import unittest

import at_once
import faulty
from fault_machine import GPUS, Machine, Watch, data_of, files_of, observed, series_of, value_of
from harness import Daemon, Page, wait_until

SKIPPED = 77
WELL = "0"
SOON = 10  # seconds within which all is right again
BUSY = 0.97
METRICS, SENSORS = "gpu_metrics", "hwmon/"


def errors(page: Page, gpu: str) -> float:
    return sum(page.of("gpumeter_read_errors_total", gpu=gpu).values())


def is_up(page: Page, gpu: str) -> bool:
    return value_of(page, gpu, "gpu_up") == 1


def mean_busy(before: Page, after: Page, gpu: str) -> float:
    busy = [value_of(page, gpu, "gpu_busy_seconds_total") for page in (before, after)]
    return (busy[1] - busy[0]) / (observed(after, gpu) - observed(before, gpu))


class ReadErrorsTest(unittest.TestCase):
    def setUp(self):
        self.machine = self.enterContext(Machine())

    def daemon(self) -> Daemon:
        daemon = self.enterContext(self.machine.daemon())
        daemon.wait_ready()
        return daemon

    def whole(self, daemon: Daemon, seconds: float) -> int:
        """How many series each card has, once all are up and have as many."""
        def all_of_them():
            page = daemon.page()
            counts = {len(series_of(page, gpu)) for gpu in GPUS}
            return all(is_up(page, gpu) for gpu in GPUS) and len(counts) == 1 and counts.pop()
        count = wait_until(all_of_them, "all cards are whole", seconds, every=0.2)
        self.assertGreater(count, 100)
        return count

    def right_soon(self, daemon: Daemon) -> int:
        self.machine.faults.heal()
        return self.whole(daemon, SOON)

    def fail(self, kinds: "dict[str, str]") -> None:
        for gpu, kind in kinds.items():
            self.machine.faults.fail(kind, data_of(gpu))

    def falsifies_nothing(self, kinds: "dict[str, str]") -> None:
        daemon = self.daemon()
        self.whole(daemon, 60)
        time.sleep(1.5)
        before = daemon.page()
        self.fail(kinds)
        time.sleep(1.2)
        self.right_soon(daemon)
        time.sleep(1.5)
        after = daemon.page()
        for gpu, kind in kinds.items():
            with self.subTest(kind=kind):
                self.assertAlmostEqual(mean_busy(before, after, gpu), BUSY, places=6)
                self.assertGreater(errors(after, gpu), errors(before, gpu))
        self.assertEqual(errors(after, WELL), 0)

    def test_a_moment_of_what_is_no_answer_falsifies_nothing(self):
        self.falsifies_nothing({"1": "EINVAL", "2": "EOPNOTSUPP", "3": "empty"})

    def test_a_moment_of_errors_falsifies_nothing(self):
        self.falsifies_nothing({"1": "EIO", "2": "read:EPERM", "3": "EPERM"})

    def test_one_sensor_that_fails_takes_no_counter_along(self):
        daemon = self.daemon()
        self.whole(daemon, 60)
        watch = Watch(daemon)
        watch.through(1.5)
        before = daemon.page()
        for _ in range(3):
            self.machine.faults.fail("EINVAL", files_of("1", "hwmon/.*power1_average"))
            watch.through(1.2)
            self.machine.faults.heal()
            watch.through(2.2)
        after = daemon.page()
        self.assertEqual(watch.frozen, [])
        self.assertAlmostEqual(mean_busy(before, after, "1"), BUSY, places=6)
        self.assertGreater(observed(after, "1") - observed(before, "1"), 8)

    def is_bound_later(self, faults: "dict[str, tuple[str, str]]") -> None:
        for gpu, (kind, files) in faults.items():
            self.machine.faults.fail(kind, files_of(gpu, files))
        daemon = self.daemon()
        page = wait_until(lambda: all(is_up(page := daemon.page(), gpu) for gpu in GPUS) and page, "all cards are read")
        well = len(series_of(page, WELL))
        for gpu in faults:
            self.assertLess(len(series_of(page, gpu)), well, faults[gpu])
        time.sleep(1.5)
        self.right_soon(daemon)

    def test_a_source_that_denies_at_the_start_is_not_lost_for_good(self):
        self.is_bound_later({"1": ("read:EPERM", METRICS), "2": ("open:EPERM", SENSORS), "3": ("EINVAL", METRICS)})

    def test_a_source_that_fails_at_the_start_is_not_lost_for_good(self):
        self.is_bound_later({"1": ("empty", SENSORS), "2": ("EIO", METRICS)})

    def test_a_card_without_a_good_reading_is_down(self):
        kinds = {"1": "EBUSY", "2": "ETIMEDOUT", "3": "read:EPERM"}
        daemon = self.daemon()
        count = self.whole(daemon, 60)
        before, began = daemon.page(), time.monotonic()
        self.fail(kinds)
        wait_until(lambda: not any(is_up(daemon.page(), gpu) for gpu in kinds), "the cards are down", 6)
        time.sleep(2)
        page = daemon.page()
        self.assertEqual(len(series_of(page, WELL)), count)
        self.right_soon(daemon)
        after, took = daemon.page(), time.monotonic() - began
        for gpu, kind in kinds.items():
            with self.subTest(kind=kind):
                self.assertEqual({name for name, _ in series_of(page, gpu)}, {"gpu_up"})
                self.assertLess(observed(after, gpu) - observed(before, gpu), took - 2)
                self.assertGreater(errors(after, gpu), 0)
        self.assertIn("every read fails: denied", daemon.log)
        self.assertEqual(errors(after, WELL), 0)


if __name__ == "__main__":
    why = faulty.missing()
    if why:
        print(f"skipped: {why}")
        sys.exit(SKIPPED)
    at_once.main()
