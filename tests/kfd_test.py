#!/usr/bin/env python3
"""Captured topologies of the compute driver: every card gets its compute units, architecture and peaks.

Finds its cases by what lies in $GPUMETER_CAPTURES/kfd (default ../shared/captures). Around each topology a machine
is laid with one PCI function for each unique_id, at the lowest location of its nodes; what the page says of it must
be what the files say, counted here a second time.
"""
import os
import sys
import tempfile
import unittest
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "e2e"))
from harness import ROOT, Page, run, text_page  # noqa: E402

CAPTURES = Path(os.environ.get("GPUMETER_CAPTURES") or ROOT.parent / "shared/captures").resolve()
SKIPPED = 77
FP16_PER_CLOCK = {90010: 1024, 90402: 2048}  # data sheets; other architectures' peaks are not held against anything here


def topologies() -> list[Path]:
    return sorted(path for path in CAPTURES.glob("kfd/**/nodes") if path.is_dir())


def nodes_of(topology: Path) -> list[dict[str, int]]:
    nodes = [dict(line.split() for line in path.read_text().splitlines()) for path in topology.glob("*/properties")]
    return [{key: int(value) for key, value in node.items()} for node in nodes if int(node["simd_count"])]


def address(node: dict[str, int]) -> str:
    place = node["location_id"]
    return f"{node.get('domain', 0):04x}:{place >> 8:02x}:{place >> 3 & 31:02x}.{place & 7}"


def architecture(target: int) -> str:
    return f"gfx{target // 10000}{target // 100 % 100}{target % 100:x}"


def cards_of(topology: Path) -> dict[str, list[dict[str, int]]]:
    """Address -> the card's nodes."""
    by_id = defaultdict(list)
    for node in sorted(nodes_of(topology), key=lambda node: node["location_id"]):
        by_id[node["unique_id"]].append(node)
    return {address(nodes[0]): nodes for nodes in by_id.values()}


def lay(root: Path, topology: Path) -> None:
    (root / "class/kfd/kfd/topology").mkdir(parents=True)
    (root / "class/kfd/kfd/topology/nodes").symlink_to(topology)
    for place, nodes in cards_of(topology).items():
        folder = root / "bus/pci/devices" / place
        folder.mkdir(parents=True)
        (folder / "uevent").write_text(f"DRIVER=amdgpu\nPCI_CLASS=120000\nPCI_ID=1002:{nodes[0]['device_id']:04X}\n")
        if len(nodes) > 1:
            (folder / "current_compute_partition").write_text("CPX\n")


class KfdTest(unittest.TestCase):
    def page_of(self, topology: Path) -> Page:
        with tempfile.TemporaryDirectory(prefix="gpumeter-test-") as folder:
            lay(Path(folder, "sys"), topology)
            said = run("--once=0", f"--path.sysfs={folder}/sys", f"--path.state={folder}", f"--path.procfs={folder}")
        self.assertEqual(said.returncode, 0, said.stderr)
        return text_page(said.stdout)

    def test_every_card_of_every_topology(self):
        for topology in topologies():
            with self.subTest(topology=str(topology.relative_to(CAPTURES))):
                page, cards = self.page_of(topology), cards_of(topology)
                infos = {dict(labels)["pci_address"]: dict(labels) for _, labels in page.of("gpu_info")}
                self.assertEqual(set(infos), set(cards))
                for place, nodes in cards.items():
                    self.check_card(page, infos[place], nodes)

    def check_card(self, page: Page, info: dict[str, str], nodes: list[dict[str, int]]) -> None:
        units = [node["simd_count"] // node["simd_per_cu"] for node in nodes]
        target, clock = nodes[0].get("gfx_target_version", 0), nodes[0]["max_engine_clk_fcompute"] * 1e6
        self.assertEqual(info["compute_units"], str(sum(units)))
        self.assertEqual(info.get("architecture", ""), architecture(target) if target else "")
        if target in FP16_PER_CLOCK:
            self.assertEqual(page.one("gpu_peak_flops", gpu=info["gpu"], dtype="fp16"),
                             sum(units) * FP16_PER_CLOCK[target] * clock)
        parts = [dict(labels) for _, labels in page.of("gpu_partition_info") if dict(labels)["gpu"] == info["gpu"]]
        seen = {(part["minor"], part["compute_units"]) for part in parts if "compute_units" in part}
        divided = {(str(node["drm_render_minor"]), str(count)) for node, count in zip(nodes, units)}
        self.assertEqual(seen, divided if len(nodes) > 1 else set())


if __name__ == "__main__":
    if not topologies():
        print(f"skipped: no captures in {CAPTURES}/kfd (GPUMETER_CAPTURES names another folder)")
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)
