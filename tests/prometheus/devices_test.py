#!/usr/bin/env python3
"""The shipped rules and alerts hold for the golden pages of every kind of device: quiet as they are, firing for a page that changes."""
import json
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
GOLDEN = ROOT / "tests/golden"
RULES = ["rules.yml", "alerts.yml"]
ALERTS = sorted(set(re.findall(r"^ +- alert: (\w+)$", (ROOT / "packaging/prometheus/alerts.yml").read_text(), re.M)))
MINUTES = 30
SERIES = re.compile(r"^(\w+)\{(.*)\} (\S+)$", re.M)


def series_of(page: str, changed: dict[str, float]) -> list[dict[str, str]]:
    """The page for MINUTES minutes; a family of `changed` has its new value from the tenth minute on."""
    found = []
    for name, labels, value in SERIES.findall((GOLDEN / f"{page}.prom").read_text()):
        then = changed.get(name, float(value))
        values = f"{value}x9 {then}x{MINUTES - 10}"
        found.append({"series": f'{name}{{job="gpumeter",instance="a:10478",{labels}}}', "values": values})
    return found


def firing(page: str, changed: dict[str, float]) -> str:
    """promtool's account of the alerts at the end: it names each that is active although none is expected."""
    test = {"rule_files": [str(ROOT / "packaging/prometheus" / name) for name in RULES], "evaluation_interval": "2m",
            "group_eval_order": ["gpumeter-records", "gpumeter-health", "gpumeter-alerts"],
            "tests": [{"interval": "1m", "input_series": series_of(page, changed),
                       "alert_rule_test": [{"eval_time": f"{MINUTES}m", "alertname": name, "exp_alerts": []} for name in ALERTS]}]}
    with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
        json.dump(test, file)
        file.flush()
        said = subprocess.run(["promtool", "test", "rules", file.name], capture_output=True, text=True, timeout=100)
    return ",".join(sorted(set(re.findall(r"alertname: (\w+)", said.stdout + said.stderr))))


class DevicesTest(unittest.TestCase):
    maxDiff = None

    def test_no_alert_for_a_healthy_device(self):
        devices = [f"device_{name}" for name in ("nouveau", "gaudi2", "jetson_orin", "raspberry_pi_v3d", "intel_npu", "panthor_rk3588")]
        for page in ("nvidia_gb10", "nvidia_thor", "amd_strix_halo", "intel_arc_xe", "intel_arc_i915", "intel_integrated", *devices):
            with self.subTest(page=page):
                self.assertEqual(firing(page, {}), "")

    def test_errors_of_a_core_are_hardware_errors(self):
        self.assertEqual(firing("device_trainium", {}), "GpuHardwareErrorsUncorrected,GpuMemoryErrorsUncorrected")

    def test_a_hot_or_lost_device_alerts(self):
        for page in ("device_nouveau", "device_gaudi2", "intel_arc_xe"):
            with self.subTest(page=page):
                self.assertEqual(firing(page, {"gpu_temperature_margin_celsius": 3}), "GpuTemperatureNearLimit")
        for page in ("device_nouveau", "device_jetson_orin", "device_trainium", "nvidia_gb10", "intel_integrated"):
            with self.subTest(page=page):
                self.assertIn("GpuLost", firing(page, {"gpu_up": 0}))

    def test_the_hosts_memory_of_a_gpu_without_its_own(self):
        for page in ("nvidia_gb10", "nvidia_thor", "device_jetson_orin"):
            with self.subTest(page=page):
                self.assertEqual(firing(page, {"gpu_memory_used_bytes": 1e12}), "GpuMemoryNearlyFull")


if __name__ == "__main__":
    if subprocess.run(["sh", "-c", "command -v promtool"], capture_output=True).returncode != 0:
        print("skipped: no promtool")
        sys.exit(77)
    unittest.main(verbosity=2)
