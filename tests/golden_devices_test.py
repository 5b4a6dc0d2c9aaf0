#!/usr/bin/env python3
"""Given a machine of tests/fixtures/devices, when the binary has sampled it once, then exactly the page in tests/golden.

As in golden_test.py, without the daemon's own families; UPDATE_GOLDEN=1 writes the pages anew. Captures in
$GPUMETER_CAPTURES/other/*/gpu_stats replace the table of the Raspberry Pi, and the rows of other/*/hl-smi* the values of the
Gaudi 2; each number that the kernel's files have must be on the page.
"""
import os
import re
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "e2e"), str(HERE / "fixtures"), str(HERE / "fakes/nvml")]
from device_tree import MACHINES, lay_machine  # noqa: E402
from harness import ROOT, run, text_page  # noqa: E402
from machine import SCENARIOS, Machine  # noqa: E402

CAPTURES = Path(os.environ.get("GPUMETER_CAPTURES") or ROOT.parent / "shared/captures").resolve()
GOLDEN = HERE / "golden"
OWN_FAMILY = re.compile(r"(# (HELP|TYPE) )?(gpumeter|process)_")
CLASSES = {"render": "graphics", "csd": "compute", "tfu": "copy"}


def page_of(machine: Path, change=lambda root: None, env: dict[str, str] | None = None, detail: str | None = "full") -> str:
    with tempfile.TemporaryDirectory(prefix="gpumeter-test-") as folder:
        root = Path(folder)
        lay_machine(root, machine)
        change(root)
        config = root / "gpumeter.yaml"
        said = run("--once=0", f"--path.sysfs={root}/sys", f"--path.procfs={root}/proc", f"--path.state={root}",
                   "--no-collector.nvidia", *([f"--config.file={config}"] if config.exists() else []), env=env, detail=detail)
    assert said.returncode == 0, said.stderr
    return "".join(line for line in said.stdout.splitlines(keepends=True) if not OWN_FAMILY.match(line))


class GoldenDevicesTest(unittest.TestCase):
    maxDiff = None

    def test_pages(self):
        machines = sorted(MACHINES.glob("*.tree"))
        self.assertGreater(len(machines), 0)
        for machine in machines:
            with self.subTest(machine=machine.stem):
                golden = GOLDEN / f"device_{machine.stem}.prom"
                page = page_of(machine)
                if os.environ.get("UPDATE_GOLDEN") == "1":
                    golden.write_text(page)
                self.assertEqual(page, golden.read_text())

    def test_moved_nodes_give_the_same_values(self):
        plain, moved = (text_page(page_of(MACHINES / name)) for name in ("trainium.tree", "trainium_moved.tree"))
        for family in ("gpu_memory_used_bytes", "gpu_memory_category_used_bytes", "gpu_memory_errors_total", "gpu_hardware_errors_total",
                       "gpu_partition_memory_used_bytes", "gpu_power_utilization_ratio", "gpu_topology_info"):
            self.assertGreater(len(plain.of(family)), 0, family)
            self.assertEqual(plain.of(family), moved.of(family), family)

    def test_cores_sum_to_their_device(self):
        page = text_page(page_of(MACHINES / "trainium.tree"))
        for gpu in ("0", "1"):
            cores = page.of("gpu_partition_memory_used_bytes", gpu=gpu).values()
            categories = page.of("gpu_memory_category_used_bytes", gpu=gpu).values()
            self.assertEqual(len(cores), 2)
            self.assertEqual(sum(cores), page.one("gpu_memory_used_bytes", gpu=gpu, memory="vram"))
            self.assertEqual(sum(categories), sum(cores))

    def test_the_captured_tables_are_on_the_page(self):
        tables = sorted(CAPTURES.glob("other/*/gpu_stats"))
        for table in tables:
            text = table.read_text()

            def replace(root: Path) -> None:
                next((root / "sys").rglob("gpu_stats")).write_text(text)
            page = text_page(page_of(MACHINES / "raspberry_pi_v3d.tree", replace))
            for line in text.splitlines()[1:]:
                queue, _, _, runtime = line.split()
                self.assertAlmostEqual(page.one("gpu_engine_busy_seconds_total", engine=CLASSES.get(queue, queue)), int(runtime) / 1e9)
        print(f"{len(tables)} captured tables")

    def test_the_captured_rows_of_hl_smi_are_on_the_page(self):
        """index, uuid, name, driver_version, memory.total, .used, .free, power.draw, power.max, temperature.aip, utilization.aip:
        the kernel's files have no uuid, memory and utilisation, which need the vendor's library."""
        rows = [line.split(", ") for file in sorted(CAPTURES.glob("other/*/hl-smi*")) for line in file.read_text().splitlines()]
        rows = [row for row in rows if len(row) == 11 and row[0].isdigit()]
        for _, _, _, version, *_, power, limit, degrees, _ in rows:
            values = {"driver_ver": version, "power1_input": int(power.split()[0]) * 10 ** 6, "max_power": int(limit.split()[0]) * 10 ** 3,
                      "temp1_input": int(degrees.split()[0]) * 10 ** 3}

            def replace(root: Path) -> None:
                for name, value in values.items():
                    next((root / "sys").rglob(name)).write_text(f"{value}\n")
            page = text_page(page_of(MACHINES / "gaudi2.tree", replace))
            (_, labels), = page.of("gpu_info")
            self.assertEqual(dict(labels)["driver_version"], version)
            self.assertEqual(f"{page.one('gpu_power_watts'):g} W", power)
            self.assertEqual(f"{page.one('gpu_power_limit_watts', limit='enforced'):g} W", limit)
            self.assertEqual(f"{page.one('gpu_temperature_celsius', sensor='core'):g} C", degrees)
        print(f"{len(rows)} captured rows of hl-smi")

    def test_a_jetson_whose_gpu_nvml_lists_is_left_to_nvml(self):
        with Machine(SCENARIOS / "l40s.yaml") as machine:  # any GPU that is not on the bus of this machine
            page = page_of(MACHINES / "jetson_orin.tree", lambda root: (root / "gpumeter.yaml").write_text(
                f"collectors: {{drm: {{library: {machine.library}}}}}\n"), env=machine.env)
        self.assertNotIn("gk20a", page)


if __name__ == "__main__":
    unittest.main(verbosity=2)
