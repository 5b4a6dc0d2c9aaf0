#!/usr/bin/env python3
"""Every captured and every simulated machine that is well is well by `gpumeter check`: no finding, so no drain, and no sensor is past its limit.

The machines are those of the golden pages and of $GPUMETER_CAPTURES. FAULTS names those of the fixtures that show a fault on purpose.
"""
import json
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from unittest import mock

TESTS = Path(__file__).resolve().parent
sys.path[:0] = [str(TESTS), str(TESTS / "e2e")]
import captures_test as captures  # noqa: E402
import golden_devices_test as devices  # noqa: E402
import golden_nvidia_test as nvidia  # noqa: E402
import golden_test as cards  # noqa: E402
import nvidia_captures_test as nvidia_captures  # noqa: E402
from from_nvidia_smi import scenario_of  # noqa: E402
from harness import free_port, run, text_page  # noqa: E402

# Fixtures with a fault, and what the check finds.
FAULTS = {"amd_radeon_rx": {"pcie_width", "thermal_throttling"}, "amd_accelerator": {"memory_errors_uncorrected"},
          "device_trainium": {"memory_errors_uncorrected", "hardware_errors"},
          "device_trainium_moved": {"memory_errors_uncorrected", "hardware_errors"}, "nvidia_a100": {"row_remap_pending"},
          "nvidia_gb200_nvl72": {"links_down", "link_errors", "repair_pending"}}


def machines() -> Iterator[tuple[str, ModuleType, Callable[[], object]]]:
    """Name, the module whose run() reads the machine, and what lets it read."""
    for card in (*cards.CARDS.glob("*.card"), *cards.INTEL_CARDS.glob("*.card")):
        yield f"{card.parent.name}_{card.stem}", cards, lambda: cards.page_of(card)
    for machine in devices.MACHINES.glob("*.tree"):
        yield f"device_{machine.stem}", devices, lambda: devices.page_of(machine)
    for name in nvidia.scenarios():
        if name not in (*nvidia.NO_GPUS, *nvidia.SAME_AS):
            yield f"nvidia_{name}", nvidia, lambda: nvidia.page_of(name)
    for card in captures.cards():
        yield f"capture_{card.parent.name}_{card.name}", captures, lambda: captures.CapturesTest("page_of").page_of(card)
    for file, which in nvidia_captures.cases():
        yield f"capture_{file.stem}_{which}", nvidia_captures, lambda: nvidia_captures.page_of(scenario_of(file.read_text(errors="replace"), which))


class Checked:
    """Stands in for run() of a module: `gpumeter check` of the machine, then the page that was asked for."""

    def __init__(self) -> None:
        self.findings: dict[str, list[str]] = {}
        self.margins: dict[object, float] = {}

    def __call__(self, *arguments: str, **how: object) -> subprocess.CompletedProcess:
        others = [each for each in arguments if not each.startswith("--once")]
        said = run("check", "--json", f"--web.listen-address=127.0.0.1:{free_port()}", *others, **{**how, "detail": None})
        report = json.loads(said.stdout)
        for device in report["devices"]:
            self.findings[device["uuid"]] = [each["reason"] for each in device["reasons"]]
            assert device["state"] in ("ok", "degraded", "failed"), device
        self.findings["machine"] = [each["reason"] for each in report["machine"]]
        page = run(*arguments, **how)
        self.margins = text_page(page.stdout).of("gpu_temperature_margin_celsius")
        return page


class HealthyTest(unittest.TestCase):
    def test_no_machine_that_is_well_has_a_finding(self):
        count = devices_seen = 0
        for name, module, read in machines():
            with self.subTest(machine=name):
                checked = Checked()
                with mock.patch.object(module, "run", checked):
                    read()
                found = {reason for reasons in checked.findings.values() for reason in reasons}
                self.assertEqual(found, FAULTS.get(name, set()), checked.findings)
                self.assertGreater(len(checked.findings), 1, "no GPU was judged")
                # GpuOverheating: past a limit.
                self.assertEqual({series: margin for series, margin in checked.margins.items() if margin < 0}, {})
                count, devices_seen = count + 1, devices_seen + len(checked.findings) - 1
        print(f"{count} machines, {devices_seen} GPUs")
        self.assertGreater(count, 30)

    def test_simulated_gpus_are_well(self):
        for duty in ("0", "0.5", "1"):
            said = run("check", "--simulate=8", f"--config.file={self.config(duty)}", f"--web.listen-address=127.0.0.1:{free_port()}")
            self.assertEqual(said.returncode, 0, said.stdout)

    def config(self, duty: str) -> Path:
        path = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="gpumeter-test-")), "gpumeter.yaml")
        path.write_text(f"paths: {{state: {path.parent}}}\ncollectors: {{simulated: {{enabled: true, devices: 8, duty: {duty}}}}}\n")
        return path


if __name__ == "__main__":
    unittest.main(verbosity=2)
