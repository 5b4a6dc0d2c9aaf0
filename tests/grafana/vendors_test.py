#!/usr/bin/env python3
"""The dashboard of one GPU over golden pages of every kind of device: which panels have data, and why the others have none.

promtool writes each page into a database as a machine that was scraped for ten minutes; Prometheus evaluates the panels' queries.
"""
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS.parent / "packaging/grafana/preview"))
import dashboards  # noqa: E402
import live  # noqa: E402

SKIPPED = 77
SECONDS, STEP = 600, 15
SERIES = re.compile(r"^(\w+)\{(.*)\} (\S+)$", re.M)
# Families of the running daemon, of jobs and of benchmarks, which golden pages lack.
OF_THE_DAEMON = re.compile(r"\b(gpu_health\w*|gpu_benchmark_\w+|gpumeter_\w+|ml_\w+|process_\w+)\{")
PANELS = {panel.title: panel for panel in dashboards.load("gpu").panels
          if not all(OF_THE_DAEMON.search(target["expr"]) for target in panel.targets)}

MARGINS = {"Margin now", "Temperature margin"}
MEMORY_SHARE = {"Memory used now", "Used share of each memory"}
# Why panels have no data.
REASONS = {
    "xid": ("no XID has occurred, or the driver has none", {"Driver errors, last seen"}),
    "gpm": ("counters of compute units need GPM, which Hopper and later data-centre GPUs have", {"Compute units and pipes"}),
    "fan": ("no fan on the board", {"Fans"}),
    "voltage": ("no sensor of the voltage", {"Voltage"}),
    "rails": ("no sensors of rails", {"Power by rail"}),
    "links": ("no links to other devices, or none that is counted", {"Links between GPUs", "Traffic between GPUs"}),
    "ras": ("no error counters of memory or blocks", {"New memory and hardware errors"}),
    "repairs": ("no spare rows, no retired pages", {"Retired and remapped memory"}),
    "pcie": ("integrated, or the driver reports no PCIe link", {"PCIe link"}),
    "link_errors": ("nothing counts the errors of links", {"New link errors"}),
    "pcie_bytes": ("nothing counts the bytes of the PCIe link", {"PCIe traffic"}),
    "controller": ("no utilisation of the memory controller", {"Memory bandwidth"}),
    "limit": ("no power limit", {"Power of limit now"}),
    "power": ("no power and no energy", {"Power now", "Power", "Power of limit now"}),
    "margin": ("no temperature limit", MARGINS),
    "heat": ("no temperature", {"Temperatures", "Temperature now", *MARGINS}),
    "throttling": ("no throttle reasons", {"Throttled now", "Throttle causes", "Throttled share of time by reason"}),
    "events": ("the driver reports no events", {"Events and driver errors"}),
    "clocks": ("no clocks", {"Clocks"}),
    "engines": ("no engines apart", {"Engines"}),
    "busy": ("no busy time: Intel's needs the PMU or clients, Gaudi's the vendor's library", {"Utilisation now", "Utilisation", "Engines"}),
    "memory": ("no memory: Intel's needs a render node, that of Gaudi and of an NPU the vendor's library", {"Video memory", *MEMORY_SHARE}),
    "size": ("the driver reports the used bytes only", MEMORY_SHARE),
}
# Devices that share the host's memory and have no link of their own.
INTEGRATED = "xid gpm links ras repairs pcie link_errors pcie_bytes controller"
NEURON = INTEGRATED.replace("ras ", "") + " size power heat throttling voltage fan rails clocks engines"
INTEL = "xid gpm links ras repairs pcie_bytes controller events busy memory"
ABSENT = {
    "nvidia_gb10": f"{INTEGRATED} fan voltage rails limit margin",
    "nvidia_thor": f"{INTEGRATED} fan voltage rails power margin throttling engines",
    "nvidia_gb200_nvl72": "xid fan voltage",
    "nvidia_vgpu_host": "xid gpm fan voltage rails links pcie_bytes",
    "amd_strix_halo": f"{INTEGRATED} fan limit margin throttling events",
    "intel_arc_xe": INTEL,
    "intel_arc_i915": f"{INTEL} pcie link_errors rails margin",
    "intel_integrated": f"{INTEL} pcie link_errors fan voltage rails power heat",
    "device_trainium": NEURON,
    "device_trainium_moved": NEURON,
    "device_gaudi2": INTEGRATED.replace("pcie ", "") + " busy memory throttling fan rails",
    "device_jetson_orin": f"{INTEGRATED} fan limit throttling events engines",
    "device_intel_npu": f"{INTEGRATED} memory power heat throttling events fan voltage rails engines",
}


def lines(page: str, now: int) -> str:
    """The page's series as OpenMetrics text. Counters grow by 1 a second, so that no rate rests on a constant."""
    found = []
    for name, labels, value in SERIES.findall((TESTS / f"golden/{page}.prom").read_text()):
        for at in range(now - SECONDS, now + 1, STEP):
            grown = float(value) + (at - now + SECONDS if name.endswith("_total") else 0)
            found.append(f'{name}{{job="gpumeter",instance="{page}",{labels}}} {grown!r} {at}')
    return "\n".join(found) + "\n"


class VendorsTest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        folder = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="gpumeter-test-"))
        now = int(time.time()) - 60
        Path(folder, "pages").write_text("".join(lines(page, now) for page in ABSENT) + "# EOF\n")
        subprocess.run(["promtool", "tsdb", "create-blocks-from", "openmetrics", f"{folder}/pages", f"{folder}/data"],
                       capture_output=True, check=True, timeout=60)
        cls.window = live.Window(now - 60, now, step=60)
        cls.prometheus = cls.enterClassContext(live.Prometheus(folder, {}))
        cls.prometheus.wait_until_ready()

    def shown(self, page: str) -> set[str]:
        variables = {"job": dashboards.ALL, "instance": page, "gpu": dashboards.ALL, "user": dashboards.ALL, "run": dashboards.ALL}
        return {title for title, panel in PANELS.items()
                if any(self.prometheus.evaluate(target, variables, self.window) for target in panel.targets)}

    def test_a_panel_has_data_or_a_reason_to_have_none(self):
        for page, reasons in ABSENT.items():
            with self.subTest(page=page):
                absent = set().union(*(REASONS[reason][1] for reason in reasons.split()))
                shown = self.shown(page)
                self.assertEqual(sorted(set(PANELS) - shown), sorted(absent))
                print(f"{page}: {len(shown)} of {len(PANELS)} panels; " + "; ".join(REASONS[reason][0] for reason in reasons.split()))

    def test_the_fleet_shows_every_kind_of_device(self):
        panel = next(panel for panel in dashboards.load("fleet").panels if panel.title == "GPUs")
        variables = {"job": dashboards.ALL, "instance": dashboards.ALL, "gpu": dashboards.ALL}
        count, = self.prometheus.evaluate(panel.targets[0], variables, self.window)
        devices = sum((TESTS / f"golden/{page}.prom").read_text().count("\ngpu_up{") for page in ABSENT)
        self.assertEqual(count.points[-1][1], devices)


if __name__ == "__main__":
    if not shutil.which("prometheus"):
        print("skipped: there is no prometheus (package prometheus)")
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)
