#!/usr/bin/env python3
"""Cards whose files fail for a while, on a sysfs of FUSE: counters stay exact, the card comes back, the others do not
notice. Skipped without root, /dev/fuse and python3-fusepy."""
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from faulty_sysfs import FaultySysfs, available  # noqa: E402

if not available():
    print("skipped: needs root, /dev/fuse and python3-fusepy")
    sys.exit(77)
from golden_test import CARDS, lay, write  # noqa: E402
from harness import Daemon, Page, wait_until  # noqa: E402

BROKEN, WELL = "0000:2d:00.0", "0000:1a:00.0"
SOON = 10  # seconds within which all is right again
# Its numbers: all but what the bus and the power management say.
DATA = BROKEN + r"/(?!uevent|revision|power/|unique_id|vbios_version|drm/|.*(name|label)$)"


def lay_machine(root: Path) -> None:
    """Two cards of one kind, the first of them in a faulty slot."""
    text = (CARDS / "radeon_rx.card").read_text()
    for address, uid in ((BROKEN, "00c0ffee00c0ffee"), (WELL, "00c0ffee00c0ff01")):
        card = root / f"{uid}.card"
        write(card, text.replace(BROKEN, address).replace("00c0ffee00c0ffee", uid).replace("0000:2b:", f"0000:{address[5]}b:")
              .replace("0000:2c:", f"0000:{address[5]}c:").encode())
        lay(root / "sys", card)


class FaultsTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="gpumeter-test-")
        root = Path(self.folder.name)
        lay_machine(root)
        self.config = root / "gpumeter.yaml"
        write(self.config, f"collectors:\n  amd:\n    ids_file: {CARDS}/amdgpu.ids\n".encode())
        self.sysfs = FaultySysfs(root / "sys")
        self.root = root

    def tearDown(self):
        self.sysfs.close()
        self.folder.cleanup()

    def daemon(self, **named) -> Daemon:
        return Daemon("--no-collector.nvidia", "--no-collector.simulated", f"--config.file={self.config}",
                      f"--path.sysfs={self.sysfs.path}", f"--path.procfs={self.root}", **named)

    def series(self, page: Page, address: str) -> set:
        uuid = "GPU-00c0ffee00c0ffee" if address == BROKEN else "GPU-00c0ffee00c0ff01"
        return {key for key in page if ("uuid", uuid) in key[1]}

    def value(self, page: Page, name: str, address: str = BROKEN, **labels):
        uuid = "GPU-00c0ffee00c0ffee" if address == BROKEN else "GPU-00c0ffee00c0ff01"
        return page.one(name, uuid=uuid, **labels)

    def whole(self, daemon: Daemon) -> int:
        """Series of the well card, once both have as many."""
        def both():
            page = daemon.page()
            well, broken = (len(self.series(page, address)) for address in (WELL, BROKEN))
            return well if well > 100 and well == broken else 0
        return wait_until(both, "both cards have all series")

    def right_within(self, daemon: Daemon, count: int) -> float:
        """Heals, and says after how long the card has its series and is up."""
        self.sysfs.heal()
        healed = time.monotonic()
        wait_until(lambda: len(self.series(daemon.page(), BROKEN)) == count and
                   self.value(daemon.page(), "gpu_up") == 1, "the card is whole again", seconds=SOON)
        return time.monotonic() - healed

    def true_mean(self, before: Page, after: Page) -> float:
        def grown(name, **labels):
            return self.value(after, name, **labels) - self.value(before, name, **labels)
        return grown("gpu_busy_seconds_total") / grown("gpu_observed_seconds_total", tier="fast")

    def test_a_moment_of_errors_falsifies_nothing(self):
        with self.daemon() as daemon:
            count = self.whole(daemon)
            for kind in ("EINVAL", "EOPNOTSUPP", "empty", "EIO", "EPERM"):
                with self.subTest(kind=kind):
                    time.sleep(2.5)
                    before = daemon.page()
                    self.sysfs.fault(kind, DATA)
                    time.sleep(1.2)
                    self.right_within(daemon, count)
                    time.sleep(2.5)
                    after = daemon.page()
                    self.assertAlmostEqual(self.true_mean(before, after), 0.97, places=6)
                    self.assertGreater(sum(after.of("gpumeter_read_errors_total").values()),
                                       sum(before.of("gpumeter_read_errors_total").values()))

    def test_one_sensor_that_fails_takes_no_counter_along(self):
        with self.daemon() as daemon:
            self.whole(daemon)
            time.sleep(1.5)
            before = daemon.page()
            for _ in range(3):
                self.sysfs.fault("EINVAL", BROKEN + "/hwmon/.*power1_average")
                time.sleep(1.2)
                self.sysfs.heal()
                time.sleep(2.2)
            after = daemon.page()
            self.assertAlmostEqual(self.true_mean(before, after), 0.97, places=6)
            seconds = self.value(after, "gpu_observed_seconds_total", tier="fast") - \
                self.value(before, "gpu_observed_seconds_total", tier="fast")
            self.assertGreater(seconds, 8)

    def test_unreadable_at_the_start_is_not_lost_for_good(self):
        sources = (BROKEN + "/gpu_metrics", BROKEN + "/hwmon/")
        for i, kind in enumerate(("EPERM", "open:EPERM", "EINVAL", "empty", "EIO")):
            for pattern in (sources[i % 2],):
                with self.subTest(kind=kind, pattern=pattern):
                    self.sysfs.fault(kind, pattern)
                    with self.daemon() as daemon:
                        wait_until(lambda: self.value(daemon.page(), "gpu_up") == 1, "the card is read")
                        well = len(self.series(daemon.page(), WELL))
                        self.assertLess(len(self.series(daemon.page(), BROKEN)), well)
                        time.sleep(1.5)
                        self.right_within(daemon, well)
                    self.sysfs.heal()

    def test_a_card_without_a_good_reading_is_down(self):
        with self.daemon() as daemon:
            count = self.whole(daemon)
            for kind in ("EIO", "EBUSY", "ETIMEDOUT", "EPERM"):
                with self.subTest(kind=kind):
                    observed = self.value(daemon.page(), "gpu_observed_seconds_total", tier="fast")
                    self.sysfs.fault(kind, DATA)
                    wait_until(lambda: self.value(daemon.page(), "gpu_up") == 0, "the card is down", seconds=6)
                    time.sleep(2)
                    page = daemon.page()
                    self.assertEqual({name for name, _ in self.series(page, BROKEN)}, {"gpu_up"})
                    self.assertEqual(len(self.series(page, WELL)), count)
                    self.right_within(daemon, count)
                    grown = self.value(daemon.page(), "gpu_observed_seconds_total", tier="fast") - observed
                    self.assertLess(grown, 4)
                    self.assertGreater(sum(daemon.page().of("gpumeter_read_errors_total", gpu="1").values()), 0)
            self.assertIn("every read fails: denied", daemon.log)
            self.assertEqual(sum(daemon.page().of("gpumeter_read_errors_total", gpu="0").values()), 0)

    def test_a_card_that_fails_from_the_start_is_down_until_it_answers(self):
        self.sysfs.fault("EIO", DATA)
        with self.daemon() as daemon:
            wait_until(lambda: self.value(daemon.page(), "gpu_up") == 0, "the card is down", seconds=SOON)
            self.assertEqual(self.value(daemon.page(), "gpu_up", WELL), 1)
            self.right_within(daemon, len(self.series(daemon.page(), WELL)))

    def test_an_identity_that_hangs_costs_its_card_alone(self):
        for name in ("unique_id", "vbios_version"):
            with self.subTest(file=name):
                self.sysfs.fault("hang", BROKEN + "/" + name + "$")
                with self.daemon(wait=False) as daemon:
                    try:
                        wait_until(lambda: self.answers(daemon), "the other card is read", seconds=SOON)
                        self.assertIn(BROKEN, daemon.log)
                        self.right_within(daemon, len(self.series(daemon.page(), WELL)))
                    finally:
                        self.sysfs.heal()  # the kernel ends no process that waits for FUSE

    def answers(self, daemon: Daemon) -> bool:
        try:
            return self.value(daemon.page(), "gpu_up", WELL) == 1
        except (OSError, AssertionError):
            return False


if __name__ == "__main__":
    unittest.main(verbosity=2)
