#!/usr/bin/env python3
"""Captures of real NVIDIA cards: the page must have the values that nvidia-smi printed.

Finds its cases by what lies in $GPUMETER_CAPTURES/nvidia (default ../shared/captures): text files with the sections
`query (-q)` and `query-gpu` of nvidia-smi, idle and under load. `-q` becomes a scenario of the fake NVML; the page is
held against the CSV (nvidia_smi_csv.py) and against each line of `-q` (nvidia_smi_lines.py). Every capture alone, then all of
them in one machine.
"""
import os
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "e2e"))
sys.path.insert(0, str(HERE / "fakes/nvml"))
from from_nvidia_smi import scenario_of  # noqa: E402
from harness import ROOT, Page, run, text_page  # noqa: E402
from machine import Machine  # noqa: E402
from nvidia_smi_csv import Gpu, Instance, gpus, instances  # noqa: E402
from nvidia_smi_lines import Lines  # noqa: E402
from nvidia_smi_tree import parse, section  # noqa: E402
import yaml  # noqa: E402

CAPTURES = Path(os.environ.get("GPUMETER_CAPTURES") or ROOT.parent / "shared/captures").resolve() / "nvidia"
SKIPPED = 77
SECTIONS = ("idle", "load")
# gpu_info's label -> the CSV's column.
IDENTITY = {"model": "name", "driver_version": "driver_version", "vbios_version": "vbios_version", "serial": "serial"}


def cases() -> list[tuple[Path, str]]:
    return [(file, which) for file in sorted(CAPTURES.glob("*.txt")) for which in SECTIONS
            if gpus(file.read_text(errors="replace"), which)]


def page_of(scenario: dict) -> Page:
    with tempfile.TemporaryDirectory(prefix="gpumeter-test-") as folder:
        file = Path(folder, "scenario.yaml")
        file.write_text(yaml.safe_dump(scenario))
        with Machine(file, time=2.0) as machine:
            said = run("--once=0", *machine.arguments, f"--path.procfs={folder}", f"--path.state={folder}", env=machine.env)
    assert said.returncode == 0, said.stderr
    return text_page(said.stdout)


def address_of(bus_id: str) -> str:
    """00000000:0C:00.0 -> 0000:0c:00.0"""
    domain, rest = bus_id.lower().split(":", 1)
    return f"{int(domain, 16):04x}:{rest}"


class Comparison:
    """Compares one GPU's series on the page with nvidia-smi's output."""

    def __init__(self, page: Page, address: str):
        found = [dict(labels) for _, labels in page.of("gpu_info", pci_address=address)]
        assert len(found) == 1, f"{address}: {len(found)} GPUs on the page"
        self.page, self.info = page, found[0]
        self.wrong: list[str] = []
        self.compared = 0

    def expect(self, what: str, expected: object, found: object) -> None:
        self.compared += 1
        is_near = isinstance(expected, float) and isinstance(found, float) and abs(found - expected) <= 1e-9 * abs(expected)
        if expected != found and not is_near:
            self.wrong.append(f"{what} is {found}, nvidia-smi says {expected}")

    def gpu(self, gpu: Gpu, identity: dict[str, str]) -> None:
        for (family, labels), value in gpu.values.items():
            self.expect(f"{family}{dict(labels)}", value, self.page.one(family, gpu=self.info["gpu"], **dict(labels)))
        for (family, labels), (label, word) in gpu.one_of.items():
            holds = [dict(key[1])[label] for key, value in self.page.of(family, gpu=self.info["gpu"], **dict(labels)).items()
                     if value == 1]
            self.expect(f"{family}{dict(labels)}", [] if word is None else [word], holds)
        for label, column in identity.items():
            said = gpu.row.get(column, "")
            self.expect(f"gpu_info {label}", None if "N/A" in said else said, self.info.get(label))

    def instance(self, instance: Instance) -> None:
        labels = {"gpu": self.info["gpu"], "gpu_instance": instance.gpu_instance}
        found = [dict(where) for _, where in self.page.of("gpu_partition_info", **labels)]
        self.expect(f"MIG instance {instance.gpu_instance}", [instance.multiprocessors],
                    [info.get("compute_units") for info in found])
        for family, memory, value in (("gpu_partition_memory_size_bytes", "vram", instance.size),
                                      ("gpu_partition_memory_size_bytes", "bar1", instance.bar1),
                                      ("gpu_partition_memory_used_bytes", "vram", instance.used)):
            partition = found[0]["partition"] if found else ""
            self.expect(f"{family} of MIG instance {instance.gpu_instance}", value,
                        self.page.one(family, gpu=self.info["gpu"], partition=partition, memory=memory))


class NvidiaCapturesTest(unittest.TestCase):
    def assert_reads(self, page: Page, capture: Path, which: str, addresses: list[str], identity: dict[str, str]) -> int:
        text = capture.read_text(errors="replace")
        compared = 0
        for index, gpu in enumerate(gpus(text, which)):
            with self.subTest(capture=capture.name, section=which, gpu=index):
                comparison = Comparison(page, addresses[index])
                comparison.gpu(gpu, identity)
                for instance in (one for one in instances(text, which) if one.gpu == index):
                    comparison.instance(instance)
                self.assertEqual("\n".join(comparison.wrong), "")
                self.assertGreater(comparison.compared, 50)
                compared += comparison.compared
        return compared

    def test_each_capture_alone(self):
        compared, torn, moved = 0, 0, []
        for capture, which in cases():
            text = capture.read_text(errors="replace")
            page = page_of(scenario_of(text, which))
            rows = gpus(text, which)
            compared += self.assert_reads(page, capture, which, [address_of(gpu.row["pci.bus_id"]) for gpu in rows], IDENTITY)
            torn += sum(gpu.torn for gpu in rows)
            moved += [share for gpu in rows for share in gpu.moved]
        print(f"{compared} values of {len(cases())} sections of {len({file for file, _ in cases()})} captures; of {len(moved)} "
              f"that move, {sum(share > 0 for share in moved)} had changed between the two queries, and {torn} were in one "
              "of them only")

    def test_each_line_is_on_the_page_or_left_out_with_a_reason(self):
        for capture, which in cases():
            text = capture.read_text(errors="replace")
            root, page = parse(section(text, f"{which} :: query (-q)") or ""), page_of(scenario_of(text, which))
            for gpu in root.all("GPU"):
                with self.subTest(capture=capture.name, section=which, gpu=gpu.value):
                    lines = Lines(page, address_of(gpu.value), root, gpu)
                    self.assertEqual("\n".join(lines.wrong), "")
                    self.assertGreater(lines.counts["on the page"], 80)
                    print(f"{capture.name}, {which}: {dict(lines.counts)}")

    def test_all_cards_in_one_machine(self):
        identity = {label: column for label, column in IDENTITY.items() if label != "driver_version"}  # there is one
        scenario: dict = {"system": {"driver_version": "1.0", "nvml_version": "1.0"}, "devices": []}
        addresses: dict[tuple[Path, str], list[str]] = {}
        for case in cases():
            for device in scenario_of(case[0].read_text(errors="replace"), case[1])["devices"]:
                place = len(scenario["devices"]) + 1
                device["uuid"], device["pci"]["bus_id"] = f"GPU-{place}", f"00000000:{place:02X}:00.0"
                addresses.setdefault(case, []).append(f"0000:{place:02x}:00.0")
                scenario["devices"].append(device)
        page = page_of(scenario)
        self.assertEqual(len(page.of("gpu_up")), len(scenario["devices"]))
        compared = sum(self.assert_reads(page, *case, addresses[case], identity) for case in cases())
        print(f"{compared} values of {len(scenario['devices'])} GPUs in one machine")


if __name__ == "__main__":
    if not cases():
        print(f"skipped: no captures in {CAPTURES} (GPUMETER_CAPTURES names another folder)")
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)
