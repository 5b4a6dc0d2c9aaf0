#!/usr/bin/env python3
"""Given a scenario of tests/fixtures/nvidia, when the binary has sampled it once, then exactly the page in tests/golden.

The scenario stands still at TIME. Both formats are clean, and say the same of the GPUs. The daemon's own families are
left out, as in golden_test.py; UPDATE_GOLDEN=1 writes the pages anew.
"""
import os
import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "e2e"))
sys.path.insert(0, str(HERE / "fakes/nvml"))
from golden_test import GOLDEN, OWN_FAMILY  # noqa: E402
from harness import Daemon, Page, promtool_findings, run, text_page, wait_until  # noqa: E402
from machine import SCENARIOS, Machine  # noqa: E402

TIME = 0.5  # seconds; the first thing that happens in any scenario is later
# What is another scenario's machine until something happens in it.
SAME_AS = {"h100_8_lost3": "h100_8", "h100_8_hung3": "h100_8", "h100_8_all_hung": "h100_8", "h100_8_xid_storm": "h100_8"}
NO_GPUS = ("no_driver", "driver_mismatch", "driver_returns")


def scenarios() -> list[str]:
    return sorted(file.stem for file in SCENARIOS.glob("*.yaml"))


def page_of(name: str, detail: str | None = "full") -> str:
    with Machine(SCENARIOS / f"{name}.yaml", TIME) as machine:
        said = run("--once=0", *machine.arguments, f"--path.procfs={machine.procfs}", f"--path.state={machine.folder}",
                   env=machine.env, detail=detail)
    assert said.returncode == 0, said.stderr
    return said.stdout


def of_gpus(text: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if not OWN_FAMILY.match(line))


class GoldenNvidiaTest(unittest.TestCase):
    maxDiff = None

    def test_pages(self):
        for name in (each for each in scenarios() if each not in NO_GPUS):
            with self.subTest(scenario=name):
                page = page_of(name)
                golden = GOLDEN / f"nvidia_{SAME_AS.get(name, name)}.prom"
                if os.environ.get("UPDATE_GOLDEN") == "1" and name not in SAME_AS:
                    golden.write_text(of_gpus(page))
                self.assertEqual(of_gpus(page), golden.read_text())
                self.assertEqual(promtool_findings(page), "")

    def test_the_workloads_sum_to_the_device(self):
        for name in (each for each in scenarios() if each not in NO_GPUS and each not in SAME_AS):
            page = text_page((GOLDEN / f"nvidia_{name}.prom").read_text())
            for uuid in {dict(labels)["uuid"] for _, labels in page.of("gpu_workload_share_ratio")}:
                with self.subTest(scenario=name, uuid=uuid):
                    self.assertAlmostEqual(sum(page.of("gpu_workload_share_ratio", uuid=uuid).values()), 1)
                    energy = page.one("gpu_energy_joules_total", uuid=uuid)
                    of_workloads = sum(page.of("gpu_workload_energy_joules_total", uuid=uuid).values())
                    self.assertAlmostEqual(of_workloads, energy or 0, places=3)
                    used = [page.one("gpu_memory_used_bytes", uuid=uuid, memory=memory) for memory in ("vram", "unified")]
                    self.assertEqual(used.count(None), 1)  # of one kind, never of both
                    memory = sum(page.of("gpu_workload_memory_used_bytes", uuid=uuid).values())
                    self.assertLessEqual(memory, used[0] or used[1])

    def test_a_machine_without_a_driver_shows_no_gpu(self):
        for name in NO_GPUS:
            with self.subTest(scenario=name):
                page = page_of(name)
                self.assertEqual(of_gpus(page), "")
                self.assertEqual(text_page(page).one("gpumeter_collector_up", collector="nvidia"), 0)

    def test_the_same_in_openmetrics(self):
        for name in (each for each in scenarios() if each not in NO_GPUS and each not in SAME_AS):
            with self.subTest(scenario=name):
                golden = text_page((GOLDEN / f"nvidia_{name}.prom").read_text())
                with Machine(SCENARIOS / f"{name}.yaml", TIME) as machine, \
                        Daemon(*machine.arguments, f"--path.procfs={machine.procfs}", env=machine.env) as daemon:
                    expected = self.gauges(golden).keys()
                    page = wait_until(lambda: expected <= self.gauges(p := daemon.page()).keys() and p, "the GPUs are read")
                self.assertEqual(self.gauges(page), self.gauges(golden))

    def gauges(self, page: Page) -> dict:
        """Without counters, which grow, their begin, and the judgement, which `--once` does not make."""
        return {key: value for key, value in page.items()
                if key[0].startswith("gpu_") and not key[0].startswith("gpu_health") and not key[0].endswith(("_total", "_created"))}


if __name__ == "__main__":
    unittest.main(verbosity=2)
