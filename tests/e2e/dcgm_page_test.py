#!/usr/bin/env python3
"""/metrics?names=dcgm and the rule packs give the same values with the same labels. The rules get the page that they get by default.

Given a machine of the fake NVML that stands still, promtool evaluates the rules on the daemon's page, and the result is compared
with the daemon's page under dcgm-exporter's names.
"""
import itertools
import json
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "fakes/nvml"))
from harness import OPENMETRICS, Daemon, openmetrics_page, promtool_findings, text_page, wait_until  # noqa: E402
from machine import ROOT, SCENARIOS, Machine  # noqa: E402

RULES = ROOT / "packaging/prometheus"
NAMES = {"dcgm": "dcgm-names-4.8.yml", "dcgm-4.9": "dcgm-names-4.9.yml"}
# In the order of dcgm-exporter's lines. The rules have no capital letters in pci_bus_id, and their host is that of the target.
LABELS = ("gpu", "UUID", "device", "modelName", "GPU_I_PROFILE", "GPU_I_ID", "DCGM_FI_DRIVER_VERSION", "DCGM_FI_SYSTEM_DRIVER_VERSION")
RATES = re.compile(r"DCGM_(FI_PROF_(PCIE|NVLINK)_|FI_DEV_NVLINK_(BANDWIDTH|THROUGHPUT)|EXP_)")  # a page has none


def braces(labels: dict[str, str]) -> str:
    return "{" + ",".join(f"{name}={json.dumps(value)}" for name, value in labels.items()) + "}"


def samples(text: str) -> dict:
    """The Python parser appends `_total` to counters."""
    return {(name.removesuffix("_total"), labels): value for (name, labels), value in text_page(text).items()}


class DcgmPageTest(unittest.TestCase):
    maxDiff = None

    def still(self, daemon: Daemon) -> tuple[str, dict[str, str]]:
        """The page and those under other names, of the same values."""
        attempts = itertools.count()  # a rendered page answers the same request for a second

        def pages():
            before, attempt = daemon.fetch("/metrics").text, next(attempts)
            others = {names: daemon.fetch(f"/metrics?names={names}&attempt={attempt}").text for names in NAMES}
            after = daemon.fetch("/metrics").text
            return (before, others) if self.of_gpus(before) == self.of_gpus(after) and "gpu_pcie_replays_total" in before else None
        return wait_until(pages, "the page stands still")

    def of_gpus(self, text: str) -> list[str]:
        return [line for line in text.splitlines() if re.match(r"gpu_(?!workload|host|topology|health|observed)", line)]

    def evaluated(self, page: str, rules: str, expected: dict[str, float]) -> subprocess.CompletedProcess:
        series = []
        for (name, labels), value in text_page(page).items():
            if name.startswith("gpu_") and not name.startswith("gpu_workload"):
                series.append({"series": name + braces({**dict(labels), "job": "g", "instance": "a:1"}), "values": f"{value!r}x6"})
        expr = f'sum by (__name__, {", ".join(LABELS)}) ({{__name__=~"DCGM_.+", __name__!~"{RATES.pattern}.*"}})'
        samples = [{"labels": labels, "value": value} for labels, value in expected.items()]
        case = {"rule_files": [str(RULES / rules)], "evaluation_interval": "1m", "tests": [
            {"interval": "1m", "input_series": series, "promql_expr_test": [{"expr": expr, "eval_time": "6m", "exp_samples": samples}]}]}
        with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
            file.write(json.dumps(case))
            file.flush()
            return subprocess.run(["promtool", "test", "rules", file.name], capture_output=True, text=True, timeout=60)

    def test_the_page_and_the_rules_say_the_same(self):
        for scenario in ("h100_8", "h200_mig7", "l40s"):
            with Machine(SCENARIOS / f"{scenario}.yaml", 0.5) as machine, \
                    Daemon(*machine.arguments, f"--path.procfs={machine.procfs}", env=machine.env, detail=None) as daemon:
                page, others = self.still(daemon)
            for names, text in others.items():
                with self.subTest(scenario=scenario, names=names):
                    expected = {name + braces({key: dict(labels)[key] for key in LABELS if key in dict(labels)}): value
                                for (name, labels), value in samples(text).items()}
                    self.assertGreater(len(expected), 20)
                    said = self.evaluated(page, NAMES[names], expected)
                    self.assertEqual(said.returncode, 0, said.stdout + said.stderr)

    def test_the_page_is_valid_in_both_formats_and_complete(self):
        with Machine(SCENARIOS / "h100_8.yaml") as machine, \
                Daemon(*machine.arguments, f"--path.procfs={machine.procfs}", env=machine.env, detail=None) as daemon:
            wait_until(lambda: len(daemon.page("?names=dcgm").of("DCGM_FI_DEV_POWER_USAGE")) == 8, "the GPUs are read")
            text = daemon.fetch("/metrics?names=dcgm").text
            strict = openmetrics_page(daemon.fetch("/metrics?names=dcgm", {"Accept": OPENMETRICS}).text)
            refused = daemon.fetch("/metrics?names=prometheus")
        self.assertEqual([line for line in promtool_findings(text).splitlines() if "DCGM" not in line], [])
        self.assertEqual({name for name, _ in strict}, {name for name, _ in samples(text)})
        self.assertEqual((refused.status, refused.text), (400, "names: unknown value. Use one of gpumeter, dcgm, dcgm-4.8, dcgm-4.9.\n"))
        # dcgm-exporter 4.4 to 4.8, as its users show it: the labels of a card, in this order.
        line = next(line for line in text.splitlines() if line.startswith('DCGM_FI_DEV_GPU_TEMP{gpu="3"'))
        self.assertRegex(line, r'^DCGM_FI_DEV_GPU_TEMP\{gpu="3",UUID="GPU-[-0-9a-f]{36}",pci_bus_id="00000000:61:00\.0",device="nvidia3",'
                               r'modelName="NVIDIA H100 80GB HBM3",Hostname="[^"]+",DCGM_FI_DRIVER_VERSION="580\.95\.05"\} 53$')


if __name__ == "__main__":
    unittest.main(verbosity=2)
