#!/usr/bin/env python3
"""NVIDIA's own Python binding, nvidia-ml-py, reads the same values from the fake NVML as the daemon shows.

What the binding is refused (the version or size of a struct, a function) is a fault of the fake. The scenarios stand still at TIME;
events, sample buffers and processes are read while the time runs.
"""
import json
import re
import subprocess
import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "e2e"), str(HERE.parent / "fakes/nvml"), str(HERE.parent / "gpu")]
import identifiers  # noqa: E402
import pynvml  # noqa: E402
from harness import Daemon, Key, Page, key, run, text_page, wait_until  # noqa: E402
from machine import SCENARIOS, Machine  # noqa: E402

TIME = 0.5
NAMES = ("a100", "blackwell", "h100_8", "h200_mig7", "l40s", "pre_volta", "rtx_4080")
# What the daemon makes itself of what NVML says: integrals, extremes, sums of reasons, tables, workloads, its own state; and
# what it counts since it was started.
OWN = re.compile(r"gpu_(\w+_seconds_total|(power|utilization)_(max|min)_\w+|throttled|throttle_reason_active|meter_source_info|peak_\w+|workload_\w+|up|info|fabric_info|partition_info|events_total"
                 r"|(partition_)?xid_\w+|tensor_active_ratio|energy_uncertainty_ratio|power_sensor_\w+|inventory_info|partition_tensor_active_ratio|fabric_health|pcie_(transmitted|received)_bytes_total)|(?!gpu_)\w+")
# Likewise the states that the daemon sums up by itself.
OWN_STATES = {("action", "other"), ("state", "failed")}
# A row whose fallback is a sum or an integral of the daemon's own: its series may be there although NVML has no such value.
INTEGRATED = {"gpu_energy_joules_total"}
LIVE = """
system: {driver_version: 580.95.05, nvml_version: 13.580.95.05}
events: [{at: 3, device: 0, type: xid, data: 79}, {at: 3.5, device: 0, type: xid, data: 31}, {at: 4, device: 0, type: double_bit_ecc, data: 0},
         {at: 8, device: 0, type: operational, module: SIXTEEN-LETTERS!, code: 3, severity: 40, contexts: [0, 74]}]
devices:
  - uuid: GPU-0
    name: NVIDIA H100 80GB HBM3
    utilization: {gpu: 37, memory: 5}
    power: {draw: 400 W}
    supported_events: [xid, double_bit_ecc, single_bit_ecc]
    operational_events: yes
    samples: {gpu: {period_ms: 100, capacity: 120, value: 37}, power: {period_ms: 100, capacity: 120, value: 400 W}}
    processes: {compute: [{pid: 4000001, memory: 1 GiB, sm: 30}], samples: {period_ms: 100}}
"""


def told(machine: Machine, *arguments: str) -> list[tuple[str, dict, object]]:
    done = subprocess.run([sys.executable, "-B", str(HERE / "pynvml_values.py"), *arguments], capture_output=True, text=True, timeout=120,
                          env={**machine.env, "LD_LIBRARY_PATH": str(machine.folder), "PATH": "/usr/bin:/bin"})
    assert done.returncode == 0, done.stderr
    return [tuple(json.loads(line)) for line in done.stdout.splitlines()]


def page_of(machine: Machine) -> Page:
    done = run("--once=0", *machine.arguments, f"--path.procfs={machine.folder}", f"--path.state={machine.folder}", env=machine.env)
    assert done.returncode == 0, done.stderr
    return text_page(done.stdout)


def without_identity(page: Page) -> dict[Key, float]:
    """Of a GPU its index is enough."""
    return {key(name, **{label: text for label, text in labels if label not in ("uuid", "vendor", "model")}): value
            for (name, labels), value in page.items()}


class NvidiaMlPyTest(unittest.TestCase):
    maxDiff = None

    def compare(self, name: str) -> None:
        with Machine(SCENARIOS / f"{name}.yaml", TIME) as machine:
            values, page = told(machine), page_of(machine)
        self.assertEqual([labels["what"] for family, labels, _ in values if family == "refused"], [])
        shown = without_identity(page)
        compared = lacking = 0
        read = set()
        for family, labels, value in values:
            where = key(family, **labels)
            read.add(where)
            if family == "identity":
                self.assert_facts(page, "gpu_info", labels["gpu"], value)
            elif family == "inventory":
                self.assert_facts(page, "gpu_inventory_info", labels["gpu"], value)
            elif family == "processes":
                self.assert_processes(page, labels["gpu"], value)
            elif family == "gpu_partition_info":
                self.assertEqual(len(page.of(family, **labels)), 1, labels)
            elif value is None:
                lacking += 1
                self.assertTrue(where not in shown or family in INTEGRATED, f"{where} is on the page, but the driver lacks it")
            else:
                compared += 1
                self.assertIn(where, shown)
                self.assertAlmostEqual(shown[where], value, delta=abs(value) * 1e-9, msg=where)
        print(f"{name}: {compared} values are the same, {lacking} that the driver lacks are absent")
        self.assertEqual([where for where in shown if where not in read and not OWN.fullmatch(where[0]) and not OWN_STATES & set(where[1])], [])
        self.assertGreaterEqual(compared, 10)

    def assert_facts(self, page: Page, family: str, gpu: str, facts: dict) -> None:
        (_, labels), = page.of(family, gpu=gpu)
        info = dict(labels)
        self.assertEqual({name: info.get(name, "") for name in facts}, facts)

    def assert_processes(self, page: Page, gpu: str, memory: int | None) -> None:
        shown = sum(page.of("gpu_workload_memory_used_bytes", gpu=gpu).values())
        self.assertEqual(shown, memory or 0, f"memory of gpu {gpu}'s processes")

    def test_every_identifier_is_used_or_refused(self):
        interface = identifiers.of_binding(Path(pynvml.__file__).read_text())
        self.assertEqual(identifiers.unaccounted(interface, identifiers.used_of_nvml(interface), "nvml"), [])

    def test_events_samples_and_processes(self):
        with Machine(LIVE) as machine, Daemon(*machine.arguments, env=machine.env) as daemon:
            values = told(machine, "watch", "6")
            page = wait_until(lambda: (lambda p: p if p.one("gpu_events_total", event="double_bit_ecc") == 1 else None)(daemon.page()), "all events")
        self.assertEqual([labels["what"] for family, labels, _ in values if family == "refused"], [])
        of = lambda family: [(labels, value) for family_of, labels, value in values if family_of == family]
        self.assertEqual(of("event"), [({"uuid": "GPU-0"}, event) for event in ([0x8, 79], [0x8, 31], [0x2, 0])])
        self.assertEqual({xid: page.one("gpu_xid_errors_total", xid=xid) for xid in ("79", "31", "48")}, {"79": 1, "31": 1, "48": 0})
        self.assertEqual(of("operational"), [({"uuid": "GPU-0"}, [1, "SIXTEEN-LETTERS!", 3, 40, [74]])])
        samples = {labels["of"]: value for labels, value in of("samples")}
        self.assertEqual({name: (len(set(value)), value[0]) for name, value in samples.items()}, {"gpu": (1, 37), "power": (1, 400000)})
        self.assertEqual(page.one("gpu_utilization_max_ratio", window="1m"), 0.37)
        self.assertEqual(page.one("gpu_power_max_watts", window="1m"), 400)
        self.assertEqual([value for _, value in of("busy")], [{"4000001": 30}] * 2)


for each in NAMES:
    setattr(NvidiaMlPyTest, f"test_{each}", lambda self, name=each: self.compare(name))

if __name__ == "__main__":
    unittest.main(verbosity=2)
