"""A daemon, and trainings by real frameworks that report to it: each is a script whose last line of output has its own values, as JSON."""
from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "e2e"))
from harness import Page  # noqa: E402
from jobs import Folder, dropped, shown, value  # noqa: E402

RUN_LABELS = ("run", "user")


class RealRun(unittest.TestCase):
    maxDiff = None

    def setUp(self) -> None:
        self.folder = self.enterContext(Folder())
        self.daemon = self.enterContext(self.folder.daemon())
        self.scratch = self.enterContext(tempfile.TemporaryDirectory())

    def ended(self, script: str, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-B", HERE / script, *arguments], capture_output=True, text=True, timeout=300, cwd=self.scratch,
                              env={**os.environ, "GPUMETER_SOCKET": self.folder.datagram, "CUDA_VISIBLE_DEVICES": "", **environ})

    def trained(self, script: str, *arguments: str, **environ: str) -> dict:
        done = self.ended(script, *arguments, **environ)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout.splitlines()[-1])

    def compare(self, run: str, exact: dict[str, float], close: dict[str, float]) -> Page:
        """Series are written without the label run: exact ones have these values, close ones within float32's rounding."""
        def named(series: str) -> str:
            return series.replace("{", f'{{run="{run}",', 1) if "{" in series else f'{series}{{run="{run}"}}'
        page = shown(self.daemon, {named(series): number for series, number in exact.items()})
        for series, number in close.items():
            with self.subTest(series):
                found = value(page, named(series))
                self.assertIsNotNone(found, series)
                self.assertAlmostEqual(found, number, delta=1e-6 * max(1.0, abs(number)))
        return page

    def assert_all_reported(self, page: Page, known: dict) -> None:
        self.assertEqual((dropped(page), known["dropped"]), ({}, {}))

    def took(self, page: Page, run: str, split: str = "train") -> float:
        return value(page, f'ml_step_duration_seconds_sum{{run="{run}",split="{split}"}}') or 0.0

    def facts(self, page: Page, run: str) -> dict[str, str]:
        [(_, labels)] = page.of("ml_run_info", run=run)
        return {name: text for name, text in labels if name not in RUN_LABELS}
