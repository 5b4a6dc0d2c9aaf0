#!/usr/bin/env python3
"""The standard page of 8 H100 (the fake NVML) has everything that the shipped rules, alerts and dashboards select, in at most
half of the series. The table in docs/scrape.md is what the pages have; UPDATE_DOCS=1 writes it. All other pages have all
series, and a reload switches between the two."""
import json
import os
import re
import signal
import sys
import unittest
from collections import Counter
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / each) for each in ("e2e", "fakes/nvml")]
from harness import ROOT, Daemon, Page, wait_until  # noqa: E402
from machine import SCENARIOS, Machine  # noqa: E402

SCRAPE = ROOT / "docs/scrape.md"
TABLE = re.compile(r"(?<=\n\| family \| full \| standard \|\n\|---\|---\|---\|\n)(?:\|.*\n)+")
MOST_OF_ONE = 130  # series of one H100
# One of several states holds: the usual one is always there.
USUAL_STATES = {"gpu_recovery_action": {"action": "none"}, "gpu_fabric_state": {"state": "completed"}, "gpu_fabric_health": {"state": "healthy"}}
SELECTOR = re.compile(r"\b((?:gpu|gpumeter|ml)_[a-z0-9_]+)(?:\{([^}]*)\})?")
# Judged, counted and registered for a while after the start.
LATEST = ("gpu_health", "gpu_utilization_max_ratio", "gpu_compute_active_seconds_total", "gpu_workload_share_ratio", "gpu_xid_errors_total")
OF_THE_DAEMON = {"gpumeter_read_errors_total", "gpumeter_jobs_dropped_total"}
Selectors = set[tuple[str, tuple[tuple[str, str], ...]]]


def expressions() -> list[str]:
    """All rules with their annotations, and all panels."""
    files = [*ROOT.glob("packaging/prometheus/*.yml"), *ROOT.glob("packaging/grafana/*.json")]
    return [path.read_text().replace('\\"', '"') for path in files]


def selectors() -> Selectors:
    """Names with the matchers that ask for one value."""
    return {(name, tuple(sorted(re.findall(r"""(\w+)=["'](\w+)["']""", matchers))))
            for text in expressions() for name, matchers in SELECTOR.findall(text)}


def without_starts(page: Page) -> Page:
    """The series that the page has in all formats."""
    kept = Page([])
    kept.update({each: value for each, value in page.items() if not each[0].endswith("_created")})
    return kept


def has_all(page: Page) -> bool:
    return all(page.of(name, gpu="7") for name in LATEST)


def by_family(page: Page) -> Counter[str]:
    """Series of GPU 0."""
    return Counter(name for name, labels in page if ("gpu", "0") in labels)


def table(full: Page, standard: Page) -> str:
    of_full, of_standard = by_family(full), by_family(standard)
    rows = [f"| `{name}` | {of_full[name]} | {of_standard[name]} |" for name in sorted(of_full)]
    rows.append(f"| **one GPU** | **{of_full.total()}** | **{of_standard.total()}** |")
    return "\n".join(rows) + "\n"


class StandardPageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        machine = cls.enterClassContext(Machine(SCENARIOS / "h100_8.yaml"))
        config = machine.config.read_text()
        daemon = cls.enterClassContext(Daemon(*machine.arguments, f"--path.procfs={machine.procfs}", env=machine.env, detail=None))
        cls.standard = wait_until(lambda: (page := without_starts(daemon.page())) and has_all(page) and page, "a whole page", every=0.5)
        cls.json = json.loads(daemon.fetch("/api/v1/series?match=gpu_throttle_reason_active").text)
        machine.config.write_text(config + "metrics: {detail: full, exclude: [process_th*]}\n")
        daemon.send(signal.SIGHUP)
        cls.full = wait_until(lambda: (page := without_starts(daemon.page())) and page.of("gpu_throttle_reason_active") and page, "the full page")
        cls.named = selectors()

    def test_it_has_at_most_half_of_the_series(self):
        print(f"8 H100: {len(self.full)} series full, {len(self.standard)} standard")
        self.assertLessEqual(len(self.standard), len(self.full) / 2)

    def test_a_state_that_users_average_is_on_it_while_it_is_zero(self):
        """avg_over_time() of a series that is there only while it is 1 is 1."""
        causes = self.full.of("gpu_throttled", gpu="0")
        self.assertEqual(causes, self.standard.of("gpu_throttled", gpu="0"))
        self.assertIn(0, causes.values())
        for name, usual in USUAL_STATES.items():
            self.assertEqual(set(self.full.of(name, **usual)), set(self.standard.of(name, **usual)))
            of_gpu = self.standard.of(name, gpu="0")
            self.assertTrue(all(value or series in self.standard.of(name, **usual) for series, value in of_gpu.items()), name)

    def test_a_h100_keeps_its_limit(self):
        self.assertLessEqual(by_family(self.standard).total(), MOST_OF_ONE)

    def test_everything_that_is_read_is_on_it_unless_it_is_zero(self):
        self.assertGreater(len(self.named), 100)
        fed = 0
        for name, matchers in self.named:
            for series, value in self.full.of(name, **dict(matchers)).items():
                fed += 1
                self.assertTrue(value == 0 or series in self.standard, f"{name}{dict(matchers)} misses {series}")
        self.assertGreater(fed, 800)

    def test_a_family_that_is_read_has_a_series_from_the_start(self):
        """Panels show a 0 instead of nothing, and rules tell a card without errors from one that reports none."""
        read = {name for name, _ in self.named}
        gone = {name for name, _ in self.full if name in read} - {name for name, _ in self.standard}
        self.assertLessEqual(gone, OF_THE_DAEMON)

    def test_other_pages_have_all_series(self):
        self.assertEqual(len(self.json["series"]), len(self.full.of("gpu_throttle_reason_active")))
        self.assertEqual(self.standard.of("gpu_throttle_reason_active"), {})

    def test_a_reload_excludes(self):
        self.assertGreater(self.standard.one("process_threads"), 0)
        self.assertEqual(self.full.of("process_threads"), {})

    def test_the_documented_table_is_what_the_pages_have(self):
        now, text = table(self.full, self.standard), SCRAPE.read_text()
        if os.environ.get("UPDATE_DOCS") == "1":
            SCRAPE.write_text(TABLE.sub(lambda _: now, text))
            return
        written, = TABLE.findall(text)
        self.assertEqual(written, now, "write it with UPDATE_DOCS=1 tests/prometheus/standard_page_test.py")


if __name__ == "__main__":
    unittest.main(verbosity=2)
