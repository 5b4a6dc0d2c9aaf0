#!/usr/bin/env python3
"""Every panel shows data of the standard page of simulated GPUs, scraped by a real Prometheus, and a card that reports few values
breaks none."""
import shutil
import sys
import tempfile
import time
import unittest
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS.parent / "packaging/grafana/preview"), str(TESTS), str(TESTS / "fixtures"), str(TESTS / "prometheus")]
import dashboards  # noqa: E402
from card_tree import CARDS, lay  # noqa: E402
from job_page import JobMachine, Run  # noqa: E402

SKIPPED = 77
OF_JOBS = "ml_run_gpu_info"  # simulated GPUs have no jobs
SCRAPES = 26  # a run has rates of tokens after 20 s
# The radeon driver reports a clock, a fan, a temperature and the link; everything else comes from the daemon.
OLD_CARD = CARDS / "old_radeon.card"
SHOWS_OF_OLD_CARD = {"Identity", "Health now", "Health", "Temperature now", "Margin now", "Observed now", "Clocks", "Temperatures", "Temperature margin", "Fans", "PCIe link"}
# One run that trains and restarts within the test, one that answers, on a GPU that both use.
JOBS = JobMachine(2, (Run("train", "ann", (0, 1), watts=500, samples=256, tokens={"train": 9000}, flops=5e14, restarts_at=8),
                      Run("serve", "bob", (1,), watts=90, samples=20, tokens={"input": 400, "output": 90}, answers=10)))
# Simulated GPUs are on no bus, and answer; nobody has imported results for them.
EMPTY_BY_NATURE = {("fleet", "On the bus, not read"), ("fleet", "Failed reads"), ("gpu", "Other results")}
BILLED = "[$__range:1m]", "[$__range:1s]"  # the range of this test has no whole minute
# On the standard page, the first event of a code rises from 0 after 70 s, which is longer than this test.
RISES_LATER = ("gpu", "Events and driver errors")


class LiveTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        import live

        root = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="gpumeter-test-"))
        lay(Path(root, "sys"), OLD_CARD)
        old = live.Machine("", (f"--path.sysfs={root}/sys", f"--path.procfs={root}"))
        # Lost and back, throttled, and with reasons to attend to: what a device that stays well has none of.
        lost = live.simulated(2, ["lose 1 after 3s for 2s", "xid:48 1 after 8s", "remap 1 after 2s", "throttle 0 after 5s"])
        cls.prometheus = cls.enterClassContext(live.scene({"simulated": lost, "old": old, "jobs": JOBS}))
        cls.prometheus.wait_for_scrapes(SCRAPES)
        now = time.time()
        cls.window = live.Window(now - 5, now, step=29)  # one point, whose rates are over all scrapes

    def answers(self, panel: dashboards.Panel, instance: str, gpu: str = dashboards.ALL) -> list[int]:
        """How many series each query of a panel gives; one that Prometheus refuses is an error."""
        return [len(series) for series in self.series(panel, instance, gpu)]

    def series(self, panel: dashboards.Panel, instance: str, gpu: str = dashboards.ALL) -> list[list]:
        variables = {"job": dashboards.ALL, "instance": instance, "gpu": gpu, "user": dashboards.ALL, "run": dashboards.ALL}
        return [self.prometheus.evaluate({**target, "expr": target["expr"].replace(*BILLED)}, variables, self.window) for target in panel.targets]

    def labels(self, board: str, title: str, instance: str, label: str) -> dict[str, set[str]]:
        """The values of a label in a table's rows, by GPU."""
        panel = next(panel for panel in dashboards.load(board).panels if panel.title == title)
        found: dict[str, set[str]] = {}
        for one in (one for series in self.series(panel, instance) for one in series if label in one.labels):
            found.setdefault(one.labels["gpu"], set()).add(one.labels[label])
        return found

    def test_every_query_of_every_panel_shows_simulated_gpus(self):
        for name, gpu in (("fleet", dashboards.ALL), ("gpu", "1")):
            for panel in dashboards.load(name).panels:
                with self.subTest(dashboard=name, panel=panel.title):
                    if (name, panel.title) == RISES_LATER:
                        panel = dashboards.Panel({**panel.model, "targets": [{**each, "expr": each["expr"].removesuffix(" > 0")} for each in panel.targets]})
                    if (name, panel.title) not in EMPTY_BY_NATURE:
                        given = zip(panel.targets, self.answers(panel, "simulated", gpu))
                        self.assertGreater(min([count for target, count in given if OF_JOBS not in target["expr"]], default=1), 0)

    def test_the_fleet_names_who_holds_a_gpu(self):
        self.assertEqual(self.labels("fleet", "Every GPU", "jobs", "holder").keys(), {"0", "1"})
        self.assertEqual(self.labels("fleet", "Every GPU", "jobs", "holder")["0"], {"train of ann"})
        self.assertEqual(self.labels("fleet", "Every GPU", "simulated", "holder"), {})

    def test_the_fleet_names_links_xids_and_reasons(self):
        self.assertEqual(self.labels("fleet", "Every GPU", "simulated", "links"), {"0": {"18 of 18"}, "1": {"18 of 18"}})
        self.assertEqual(self.labels("fleet", "Every GPU", "simulated", "xids"), {"1": {"48, 79"}})  # the loss was the earlier one
        self.assertLessEqual({"xid_48", "row_remap_pending"}, self.labels("fleet", "Reasons", "simulated", "reason")["1"])

    def test_the_worst_gpu_is_the_first_row(self):
        import tables

        panel = next(panel for panel in dashboards.load("fleet").panels if panel.title == "Every GPU")
        answers = {target["refId"]: series for target, series in zip(panel.targets, self.series(panel, "simulated"))}
        self.assertEqual([(row["GPU"], row["Health"]) for row in tables.table(panel, answers).rows], [("1", 0), ("0", 4)])

    def test_the_heatmap_of_steps_has_five_bounds_per_decade(self):
        panel = next(panel for panel in dashboards.load("jobs").panels if panel.title == "Durations of steps")
        bounds = sorted(float(series.labels["le"]) for series in self.series(panel, "jobs")[0])
        self.assertEqual([bound for bound in bounds if 0.1 <= bound < 20],
                         [0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0])
        self.assertEqual(bounds[-1], float("inf"))

    def test_a_chosen_cluster_hides_the_rest(self):
        panel = dashboards.load("fleet").panels[0]
        variables = {"job": dashboards.ALL, "instance": dashboards.ALL, "gpu": dashboards.ALL, "cluster": "north"}
        self.assertEqual(self.prometheus.evaluate(panel.targets[0], variables, self.window), [])
        # Any label can be that of the clusters.
        variables |= {"cluster_label": "job", "cluster": "gpumeter"}
        self.assertGreater(len(self.prometheus.evaluate(panel.targets[0], variables, self.window)), 0)

    def test_every_query_of_every_panel_shows_jobs(self):
        for panel in dashboards.load("jobs").panels:
            with self.subTest(panel=panel.title):
                self.assertGreater(min(self.answers(panel, "jobs")), 0)

    def test_what_is_exempt_exists(self):
        self.assertLessEqual(EMPTY_BY_NATURE | {RISES_LATER}, {(name, p.title) for name in dashboards.NAMES for p in dashboards.load(name).panels})

    def test_a_card_that_tells_little_shows_what_it_tells(self):
        shown = {panel.title for panel in dashboards.load("gpu").panels if max(self.answers(panel, "old"))}
        self.assertEqual(shown, SHOWS_OF_OLD_CARD)

    def test_vendors_stand_side_by_side(self):
        for panel in dashboards.load("fleet").panels + dashboards.load("jobs").panels:
            with self.subTest(panel=panel.title):
                self.answers(panel, dashboards.ALL)

    def test_no_data_at_all_is_no_error(self):
        for name in dashboards.NAMES:
            for panel in dashboards.load(name).panels:
                self.assertEqual(max(self.answers(panel, "no such machine")), 0, f"{name}: {panel.title}")


if __name__ == "__main__":
    if not shutil.which("prometheus") or not shutil.which("jsonnet"):
        print("skipped: there is no prometheus or no jsonnet (packages prometheus, jsonnet)")
        sys.exit(SKIPPED)
    unittest.main()
