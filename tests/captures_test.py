#!/usr/bin/env python3
"""Captures of real cards: the page must have the values that another program read from the same files.

Finds its cases by what lies in $GPUMETER_CAPTURES/amd, intel and other (default ../shared/captures): a folder with a cardN
and an expected.json each. Every card alone, then all of them in one machine. A value that expected.json gives is on the
page; where it gives none, there is no series.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "e2e"))
from harness import ROOT, Page, run, text_page  # noqa: E402

CAPTURES = Path(os.environ.get("GPUMETER_CAPTURES") or ROOT.parent / "shared/captures").resolve()
MAKE_SYSROOT = CAPTURES.parent / "tools/make-sysroot"
SKIPPED = 77
SENSORS = {"edge": "core", "junction": "hotspot", "mem": "memory", "1": "core",  # "1": no label, radeon has one sensor
           "pkg": "core", "vram": "memory", "gpu": "core"}  # Intel; "gpu": no label, i915 has one sensor
GENERATIONS = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6}  # GT/s, PCI Express base specification
CAPS = {"cap_current": "enforced", "cap_default": "default", "cap_min": "min", "cap_max": "max"}
# Families whose series are held against the expectation as a whole set: series -> labels that name it.
COMPARED = {
    "gpu_temperature_celsius": ["sensor"],
    "gpu_temperature_limit_celsius": ["sensor", "limit"],
    "gpu_power_watts": [],
    "gpu_power_limit_watts": ["limit"],
    "gpu_power_rail_watts": ["rail"],
    "gpu_throttled": ["cause"],
    "gpu_utilization_ratio": [],
    "gpu_memory_size_bytes": ["memory"],
    "gpu_memory_used_bytes": ["memory"],
    "gpu_clock_hertz": ["clock"],
    "gpu_fan_speed_rpm": ["fan"],
    "gpu_fan_speed_ratio": ["fan"],
    "gpu_voltage_volts": ["rail"],
    "gpu_pcie_link_generation": [],
    "gpu_pcie_link_lanes": [],
    "gpu_pcie_link_max_generation": [],
    "gpu_pcie_link_max_lanes": [],
}
# What expected.json does not always speak of: such a series is no invention where the capture has its source.
UNTOLD = {
    # Of Intel's cards expected.json has one fan, the first limit of a sensor and the clock of the first GT.
    **{("gpu_fan_speed_rpm", str(fan)): f"hwmon/*/fan{fan + 1}_input" for fan in (1, 2, 3)},
    ("gpu_temperature_limit_celsius", "max"): "hwmon/*/temp*_max",
    ("gpu_clock_hertz", "video"): "gpu_metrics pp_dpm_vclk tile*/gt1",
    ("gpu_temperature_limit_celsius", "emergency"): "hwmon/*/temp*_emergency",
    ("gpu_memory_size_bytes", "gtt"): "mem_info_gtt_total",
    ("gpu_memory_used_bytes", "gtt"): "mem_info_gtt_used",
    ("gpu_voltage_volts", "gfx"): "hwmon/*/in0_input",
    # Of APUs expected.json has the current clocks only, which their firmware leaves open, not the averages.
    ("gpu_clock_hertz", "memory"): "gpu_metrics pp_dpm_mclk",
    ("gpu_clock_hertz", "soc"): "gpu_metrics pp_dpm_socclk",
    ("gpu_clock_hertz", "fabric"): "gpu_metrics pp_dpm_fclk",
}
RAILS = {"apu": "package", "gfx": "gpu", "soc": "soc"}  # "core" is no part of the GPU
CLOCKS = {"UCLK": "memory", "SOCCLK": "soc", "VCLK": "video"}
CAUSES = ["power", "current", "thermal", "hardware", "reliability"]
INTEL_CAUSES = {"pl[124]|psys_.*": "power", "ratl|vr_thermalert|.*thermal": "thermal", "vr_tdc|iccmax": "current",
                "prochot|pwrbrk": "hardware", "fastvmode|p0_freq": "software"}
# The smallest step of expected.json's own number, where it rounds: whole MHz, 1 of 255 of a fan's duty.
TOLERANCES = {"gpu_clock_hertz": 1e6, "gpu_fan_speed_ratio": 1 / 255}
ROUNDED_DOWN = {"soc", "skin"}  # sensors of APUs in hundredths; expected.json has whole degrees
THROTTLE_BITS = {(1, 3), (2, 2), (2, 3), (2, 4)}  # versions of gpu_metrics with indep_throttle_status


def cards() -> list[Path]:
    found = [path.parent for vendor in ("amd", "intel", "other") for path in CAPTURES.glob(f"{vendor}/*/expected.json")]
    return sorted(card for card in found if any(card.glob("card[0-9]*/device"))) if MAKE_SYSROOT.exists() else []


def blob_version(card: Path) -> tuple[int, int] | None:
    """(format, content) of the card's gpu_metrics: bytes 2 and 3 of its header."""
    for blob in card.glob("card*/device/gpu_metrics"):
        header = blob.read_bytes()[:4]
        return (header[2], header[3]) if len(header) == 4 else None
    return None


class Expectation(dict):
    """(family, label values...) -> value in base units, from one expected.json."""

    def __init__(self, card: Path):
        super().__init__()
        told = json.loads((card / "expected.json").read_text())
        self.card = card
        self.is_intel = told["info"]["driver"] in ("i915", "xe")
        self.facts = {name: told["info"][name] for name in ("driver", "vbios_version") if told["info"].get(name)}
        self.stats, self.link = told["stats"], told["info"].get("link_info", {})
        self.has_throttle_bits = blob_version(card) in THROTTLE_BITS
        for part in (self.temperatures, self.power, self.memory, self.clocks, self.fan, self.voltage, self.throttling,
                     self.pcie):
            part()

    def has_source_of(self, where: tuple[str, ...]) -> bool:
        sources = UNTOLD.get((where[0], where[-1]), "").split()
        return any(found for source in sources for found in self.card.glob(f"card*/device/{source}"))

    def expect(self, value: float | None, scale: float, *where: str) -> None:
        if value is not None:
            self[where] = value * scale

    def temperatures(self) -> None:
        for name, sensor in self.stats["temps"].items():
            label = SENSORS.get(name, name)
            self.expect(sensor["current"], 1, "gpu_temperature_celsius", label)
            self.expect(sensor["crit"], 1, "gpu_temperature_limit_celsius", label, "critical")

    def power(self) -> None:
        power = self.stats["power"]
        self.expect(power.get("average", power.get("current")), 1, "gpu_power_watts")
        for cap, limit in CAPS.items():
            if not self.is_intel or self.holds_limit(cap):
                self.expect(power.get(cap), 1, "gpu_power_limit_watts", limit)
        for name, rail in RAILS.items():
            self.expect(power.get("sensors", {}).get(name), 1, "gpu_power_rail_watts", rail)

    def holds_limit(self, cap: str) -> bool:
        """Of Intel's cards expected.json also gives limits that the other program makes up where no file has one."""
        files = {"cap_current": "power*_max power*_cap", "cap_default": "power*_rated_max", "cap_max": "power*_crit"}
        found = [file for name in files.get(cap, "").split() for file in self.card.glob(f"card*/device/hwmon/*/{name}")]
        return any(int(file.read_text()) > 0 for file in found)

    def memory(self) -> None:
        self.expect(self.stats.get("busy_percent"), 0.01, "gpu_utilization_ratio")
        self.expect(self.stats["vram"].get("total"), 1, "gpu_memory_size_bytes", "vram")
        self.expect(self.stats["vram"].get("used"), 1, "gpu_memory_used_bytes", "vram")

    def clocks(self) -> None:
        clocks = self.stats["clockspeed"]
        speed = 0 if self.is_clock_gated() else clocks.get("gpu_clockspeed")
        self.expect(speed, 1e6, "gpu_clock_hertz", "graphics")
        self.expect(clocks.get("vram_clockspeed"), 1e6, "gpu_clock_hertz", "memory")
        for name, clock in CLOCKS.items():
            self.expect(clocks["sensors"].get(name), 1e6, "gpu_clock_hertz", clock)

    def is_clock_gated(self) -> bool:
        """expected.json then has the clock that the driver asks for, and the page the real one: none."""
        clocks = [*self.card.glob("card*/device/tile*/gt*/freq0/act_freq"), *self.card.glob("card*/gt_act_freq_mhz")]
        return bool(clocks) and all(int(file.read_text()) == 0 for file in clocks)

    def fan(self) -> None:
        fan = self.stats["fan"]
        self.expect(fan.get("speed_current"), 1, "gpu_fan_speed_rpm", "0")
        if fan.get("pwm_max"):
            self.expect(fan.get("pwm_current"), 1 / fan["pwm_max"], "gpu_fan_speed_ratio", "0")

    def voltage(self) -> None:
        voltage = self.stats["voltage"]
        self.expect(voltage.get("gpu"), 1e-3, "gpu_voltage_volts", "gfx")
        for name, rail in (("northbridge", "soc"), ("soc", "soc"), ("mem", "memory")):
            self.expect(voltage["sensors"].get(name), 1e-3, "gpu_voltage_volts", rail)

    def throttling(self) -> None:
        """throttle_info is {} in all captures: nothing holds the clocks down, so each cause is there with 0."""
        if self.stats.get("throttle_info") != {}:
            return
        for cause in CAUSES if self.has_throttle_bits else self.intel_causes():
            self.expect(0, 1, "gpu_throttled", cause)

    def intel_causes(self) -> set[str]:
        """The causes of the reasons for which an Intel card has a file."""
        files = [*self.card.glob("card*/device/tile*/gt*/freq0/throttle/reason_*"),
                 *self.card.glob("card*/gt/gt*/throttle_reason_*")]
        reasons = {re.sub(r"^(throttle_)?reason_", "", file.name) for file in files} - {"status"}
        return {cause for pattern, cause in INTEL_CAUSES.items() for reason in reasons if re.fullmatch(pattern, reason)}

    def pcie(self) -> None:
        for told, family in (("current", "gpu_pcie_link"), ("max", "gpu_pcie_link_max")):
            speed = re.match(r"[\d.]+", self.link.get(f"{told}_speed") or "")
            self.expect(GENERATIONS[float(speed[0])] if speed else None, 1, f"{family}_generation")
            width = self.link.get(f"{told}_width")
            self.expect(int(width) if width else None, 1, f"{family}_lanes")


def measured(page: Page, gpu: str) -> dict[tuple, float]:
    """The same shape, from the page."""
    return {(family, *(dict(labels)[name] for name in names)): value
            for family, names in COMPARED.items() for (_, labels), value in page.of(family, gpu=gpu).items()}


def differences(expected: Expectation, found: dict[tuple, float]) -> list[str]:
    wrong = []
    for where, value in expected.items():
        tolerance = TOLERANCES.get(where[0], 1e-9 * max(1, abs(value)))
        if where[0] == "gpu_temperature_celsius" and where[1] in ROUNDED_DOWN:
            tolerance = 0.99
        if where not in found:
            wrong.append(f"{where} is not on the page, expected {value}")
        elif abs(found[where] - value) > tolerance:
            wrong.append(f"{where} is {found[where]}, expected {value}")
    extra = [where for where in found if where not in expected and not expected.has_source_of(where)]
    return wrong + [f"{where} is on the page with {found[where]}, the capture gives none" for where in extra]


class CapturesTest(unittest.TestCase):
    def page_of(self, *captures: Path) -> tuple[Page, dict[Path, str]]:
        """The page of a machine with these cards, and the `gpu` label that each got, found by its PCI address."""
        with tempfile.TemporaryDirectory(prefix="gpumeter-test-") as folder:
            root = subprocess.run([MAKE_SYSROOT, f"{folder}/machine", *captures], capture_output=True, text=True,
                                  check=True).stdout.strip()
            said = run("--once=0", f"--path.sysfs={root}", f"--path.state={folder}", f"--path.procfs={folder}")
            self.assertEqual(said.returncode, 0, said.stderr)
            addresses = {(Path(root, "class/drm", f"card{i}").resolve().parent.parent.name): card
                         for i, card in enumerate(captures)}
        page = text_page(said.stdout)
        gpus = {addresses[dict(k[1])["pci_address"]]: dict(k[1])["gpu"] for k in page.of("gpu_info")}
        self.assertEqual(set(gpus), set(captures))
        return page, gpus

    def assert_reads(self, page: Page, gpus: dict[Path, str]) -> int:
        compared = 0
        for card, gpu in gpus.items():
            with self.subTest(card=card.name):
                expected = Expectation(card)
                self.assertGreater(len(expected), 0)
                self.assertEqual(page.one("gpu_up", gpu=gpu), 1)
                self.assertEqual("\n".join(differences(expected, measured(page, gpu))), "")
                (_, labels), = page.of("gpu_info", gpu=gpu)
                self.assertLessEqual(expected.facts.items(), dict(labels).items())
                compared += len(expected) + len(expected.facts)
        return compared

    def test_each_card_alone(self):
        compared = sum(self.assert_reads(*self.page_of(card)) for card in cards())
        print(f"{compared} values of {len(cards())} cards")

    def test_all_cards_in_one_machine(self):
        page, gpus = self.page_of(*cards())
        self.assertEqual(sorted(gpus.values(), key=int), [str(i) for i in range(len(cards()))])
        self.assert_reads(page, gpus)


if __name__ == "__main__":
    if not cards():
        print(f"skipped: no captures in {CAPTURES}/amd, intel and other (GPUMETER_CAPTURES names another folder)")
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)
