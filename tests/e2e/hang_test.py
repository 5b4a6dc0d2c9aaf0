#!/usr/bin/env python3
"""A device that hangs, and a device that is lost and returns: the effect on other devices, the page and the stop."""
import signal
import time
import unittest

import at_once
from harness import OF_THE_HOST, STOP, Daemon, wait_until

DEADLINE = 3.0  # of a fast pass; design: past it the device's series leave the page
OTHERS = ("0", "2", "3")


def observed(page, gpu: str) -> float:
    return page.one("gpu_observed_seconds_total", gpu=gpu, tier="fast")


def values_of(page, gpu: str) -> set[str]:
    """Names of the device's series except gpu_up, which every known device keeps."""
    return {name for name, labels in page if name.startswith("gpu_") and not name.startswith(("gpu_up", "gpu_health", *OF_THE_HOST)) and ("gpu", gpu) in labels}


class Watch:
    """Fetches the page again and again, and keeps what was seen: how long each took, when observed time moved."""

    def __init__(self, daemon: Daemon, others=OTHERS):
        self.daemon, self.others = daemon, others
        self.slowest, self.moved, self.seen, self.largest_gap = 0.0, {}, {}, 0.0

    def fetch(self):
        asked = time.monotonic()
        page = self.daemon.page()
        now = time.monotonic()
        self.slowest = max(self.slowest, now - asked)
        for gpu in self.others:
            total = observed(page, gpu)
            if total != self.seen.get(gpu):
                self.largest_gap = max(self.largest_gap, now - self.moved.get(gpu, now))
                self.seen[gpu], self.moved[gpu] = total, now
        return page, now

    def until(self, true, what: str, seconds: float):
        def look():
            page, now = self.fetch()
            return (page, now) if true(page) else None

        return wait_until(look, what, seconds, every=0.1)


class HangTest(unittest.TestCase):
    def test_a_hung_device_costs_nobody_else_anything(self):
        with Daemon("--simulate=4", "--simulate-event=hang 1 after 5s") as daemon:
            watch = Watch(daemon)
            before, _ = watch.until(lambda p: observed(p, "1") and observed(p, "0"), "observed time counts", 20)
            self.assertEqual([before.one("gpu_up", gpu=g) for g in "0123"], [1, 1, 1, 1])
            self.assertGreater(len(values_of(before, "1")), 50)

            last_alive = time.monotonic()

            def hung(page):
                nonlocal last_alive
                alive = page.one("gpu_up", gpu="1") == 1
                if alive and observed(page, "1") != hung.total:
                    hung.total, last_alive = observed(page, "1"), time.monotonic()
                return not alive

            hung.total = None
            page, gone_at = watch.until(hung, "gpu_up of the hung device is 0", 40)
            self.assertEqual(values_of(page, "1"), set())
            # Its last pass was committed up to a second before the hung one began.
            self.assertLess(gone_at - last_alive, DEADLINE + 3, "its values stayed on the page past its deadline")

            start = {gpu: (observed(page, gpu), gone_at) for gpu in OTHERS}
            end_of_watch = time.monotonic() + 10
            while time.monotonic() < end_of_watch:
                page, now = watch.fetch()
                self.assertEqual([page.one("gpu_up", gpu=g) for g in "0123"], [1, 0, 1, 1])
                time.sleep(0.1)
            for gpu, (total, since) in start.items():
                # A gap is not bridged: observed time that keeps up with the clock proves an unbroken cadence.
                self.assertAlmostEqual(observed(page, gpu) - total, now - since, delta=2.5, msg=f"gpu {gpu} lost time")
            self.assertLess(watch.largest_gap, DEADLINE)
            self.assertLess(watch.slowest, DEADLINE)

            code, seconds = daemon.stop()
            self.assertEqual(code, 0, daemon.log)
            self.assertLess(seconds, STOP)
            print(f"hung device gone {gone_at - last_alive:.2f} s after its last pass (deadline {DEADLINE} s); "
                  f"slowest page {watch.slowest * 1e3:.1f} ms; largest gap of the others {watch.largest_gap:.2f} s; "
                  f"SIGTERM to exit {seconds:.2f} s")

    def test_it_is_ready_though_a_device_hangs_from_the_start(self):
        with Daemon("--simulate=2", "--simulate-event=hang 1 after 0s") as daemon:  # waits until it is, 10 s
            page = daemon.page()
        self.assertEqual([page.one("gpu_up", gpu=str(gpu)) for gpu in range(2)], [1, 0])


class LossTest(unittest.TestCase):
    def test_a_lost_device_comes_back_as_itself(self):
        with Daemon("--simulate=4", "--simulate-event=lose 1 after 4s for 4s") as daemon:
            watch = Watch(daemon)
            before, _ = watch.until(lambda p: observed(p, "1"), "observed time counts", 20)
            identity = before.of("gpu_up", gpu="1").keys()

            def lost(page):
                if values_of(page, "1"):
                    lost.before = page
                return page.one("gpu_up", gpu="1") == 0

            lost.before = before
            page, lost_at = watch.until(lost, "gpu_up of the lost device is 0", 30)
            self.assertEqual(values_of(page, "1"), set())
            back, back_at = watch.until(lambda p: observed(p, "1"), "the device is back", 120)

            self.assertEqual(back.of("gpu_up", gpu="1").keys(), identity)
            counters = [k for k in lost.before.counters() if ("gpu", "1") in k[1] and k[0].startswith("gpu_")]
            self.assertGreater(len(counters), 20)
            for counter in counters:
                self.assertIn(counter, back)
                self.assertGreaterEqual(back[counter], lost.before[counter], counter)
            # The time away is not observed: nothing is invented for it.
            self.assertLess(observed(back, "1") - observed(lost.before, "1"), 2.5)
            print(f"lost device back after {back_at - lost_at:.1f} s; {len(counters)} counters went on; "
                  f"largest gap of the others {watch.largest_gap:.2f} s")
            self.assertEqual(daemon.stop(signal.SIGINT)[0], 0)

    def test_the_index_outlives_a_restart_without_the_device(self):
        with Daemon("--simulate=3") as daemon:
            page = daemon.page()
            uuids = {dict(k[1])["gpu"]: dict(k[1])["uuid"] for k in page.of("gpu_up")}
            daemon.stop()
            with Daemon("--simulate=3", "--simulate-event=lose 0 after 0s", state=daemon.folder.name) as again:
                page = wait_until(lambda: (p := again.page()).one("gpu_up", gpu="0") == 0 and p,
                                  "the dead GPU is shown as 0", 20)
                self.assertEqual({dict(k[1])["gpu"]: dict(k[1])["uuid"] for k in page.of("gpu_up")}, uuids)
                self.assertEqual([page.one("gpu_up", gpu=g) for g in "012"], [0, 1, 1])


if __name__ == "__main__":
    at_once.main()
