#!/usr/bin/env python3
"""The host beside the GPUs: paths between them, CPUs near them, pressure, and the CPU time of what holds one.

From trees of the test's own, and from this machine's kernel: /proc/pressure, and cgroups that the test makes if it may.
"""
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Iterator
from pathlib import Path

from harness import TEXT, Daemon, Page, promtool_findings, run, text_page, wait_until
from own_group import put_into

UNIT = f"gpumeter-test-{os.getpid()}.service"
HIERARCHIES = {"/sys/fs/cgroup": "cpu.stat", "/sys/fs/cgroup/unified": "cpu.stat", "/sys/fs/cgroup/cpuacct": "cpuacct.usage"}
SWITCH = "0000:15:01.0/0000:16:00.0"
CARDS = {  # address -> folder, NUMA node, CPUs
    "0000:18:00.0": (f"pci0000:15/{SWITCH}/0000:17:00.0/0000:18:00.0", 0, "0-15"),
    "0000:19:00.0": (f"pci0000:15/{SWITCH}/0000:17:01.0/0000:19:00.0", 0, "0-15"),
    "0000:98:00.0": ("pci0000:97/0000:97:01.0/0000:98:00.0", 1, "16-31"),
}


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n")


def lay_cards(sys: Path, addresses: list[str]) -> None:
    for address in addresses:
        folder, node, cpus = CARDS[address]
        card = sys / "devices" / folder
        for bridge in list(card.relative_to(sys / "devices").parents)[:-2]:
            write(sys / "devices" / bridge / "uevent", "DRIVER=pcieport\nPCI_CLASS=60400\nPCI_ID=11F8:4000")
        write(card / "uevent", "DRIVER=amdgpu\nPCI_CLASS=120000\nPCI_ID=1002:740F")
        write(card / "numa_node", str(node))
        write(card / "local_cpulist", cpus)
        write(card / "gpu_busy_percent", "3")
        link = sys / "bus/pci/devices" / address
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(os.path.relpath(card, link.parent))


def lay_xgmi(sys: Path, one: str, other: str) -> None:
    """Two nodes of the compute driver with a link from the first to the second."""
    for number, address in enumerate((one, other), 1):
        bus = int(address.split(":")[1], 16)
        node = sys / f"class/kfd/kfd/topology/nodes/{number}"
        write(node / "properties", f"simd_count 416\nsimd_per_cu 4\ndevice_id 29711\nlocation_id {bus << 8}\nunique_id {number}")
        write(node / "io_links/0/properties", f"type 11\nnode_from {number}\nnode_to {3 - number}")


@contextlib.contextmanager
def tree() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="gpumeter-host-") as folder:
        root = Path(folder)
        (root / "sys").mkdir()
        (root / "proc").mkdir()
        yield root


def once(root: Path) -> Page:
    said = run("--once=0", f"--path.sysfs={root}/sys", f"--path.procfs={root}/proc", f"--path.state={root}")
    assert said.returncode == 0, said.stderr
    assert promtool_findings(said.stdout) == ""
    return text_page(said.stdout)


def paths(page: Page) -> dict[tuple[str, str], str]:
    return {(dict(labels)["uuid"], dict(labels)["peer"]): dict(labels)["path"] for (_, labels) in page.of("gpu_topology_info")}


class TreeTest(unittest.TestCase):
    def test_paths_between_gpus(self) -> None:
        with tree() as root:
            lay_cards(root / "sys", list(CARDS))
            one, two, three = CARDS
            self.assertEqual(paths(once(root)), {(one, two): "pix", (two, one): "pix", (one, three): "sys", (three, one): "sys",
                                                 (two, three): "sys", (three, two): "sys"})
            lay_xgmi(root / "sys", one, three)
            linked = paths(once(root))
            self.assertEqual(linked[one, three], "link")
            self.assertEqual(linked[three, one], "link")
            self.assertEqual(linked[one, two], "pix")

    def test_one_gpu_has_no_path(self) -> None:
        with tree() as root:
            lay_cards(root / "sys", ["0000:98:00.0"])
            page = once(root)
            self.assertEqual(paths(page), {})
            self.assertEqual(page.one("gpu_info", numa_node="1", local_cpus="16-31"), 1)

    def test_pressure(self) -> None:
        with tree() as root:
            lay_cards(root / "sys", ["0000:98:00.0"])
            self.assertFalse(once(root).of("gpu_host_pressure_seconds_total"))
            write(root / "proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=2500000\nfull avg10=0.00 total=500000")
            write(root / "proc/pressure/io", "some avg10=0.00 avg60=0.00 avg300=0.00 total=7")
            page = once(root)
            self.assertEqual(page.one("gpu_host_pressure_seconds_total", resource="memory", waiting="some"), 2.5)
            self.assertEqual(page.one("gpu_host_pressure_seconds_total", resource="memory", waiting="full"), 0.5)
            self.assertEqual(page.one("gpu_host_pressure_seconds_total", resource="io", waiting="some"), 7e-6)
            self.assertIsNone(page.one("gpu_host_pressure_seconds_total", resource="io", waiting="full"))

    def test_without_a_gpu_the_host_is_not_on_the_page(self) -> None:
        with tree() as root:
            write(root / "proc/pressure/memory", "some total=2500000")
            self.assertFalse(once(root).of("gpu_host_pressure_seconds_total"))


def simulated(folder: Path, pid: int, procfs: str) -> str:
    path = folder / "gpumeter.yaml"
    gpus = {"enabled": True, "devices": 1, "processes": [f"0={pid},busy=0.5,memory=1GiB"]}
    path.write_text(json.dumps({"paths": {"procfs": procfs}, "collectors": {"simulated": gpus, "amd": {"enabled": False},
                                                                           "nvidia": {"enabled": False}}}))
    return f"--config.file={path}"


@contextlib.contextmanager
def busy_process(hierarchy: str) -> Iterator[tuple[int, Path]]:
    """A process that computes, in a cgroup of its own; a skipped test if the kernel grants none."""
    group = Path(hierarchy, UNIT)
    if not Path(hierarchy, "cgroup.procs").exists():
        raise unittest.SkipTest(f"{hierarchy} is no hierarchy of cgroups")
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        group.mkdir()
        (group / "cgroup.procs").write_text(str(process.pid))
    except OSError as error:
        process.kill()
        process.wait()
        with contextlib.suppress(OSError):
            group.rmdir()
        raise unittest.SkipTest(f"no cgroup in {hierarchy}: {error}") from None
    try:
        yield process.pid, group
    finally:
        process.kill()
        process.wait()
        group.rmdir()


class KernelTest(unittest.TestCase):
    def test_pressure_of_this_machine(self) -> None:
        file = Path("/proc/pressure/io")
        if not file.exists():
            self.skipTest("this kernel has no PSI")
        before = int(file.read_text().splitlines()[0].rpartition("=")[2]) / 1e6
        page = text_page(run("--once=0", "--simulate=1", "--path.state=/nonexistent").stdout)
        after = int(file.read_text().splitlines()[0].rpartition("=")[2]) / 1e6
        told = page.one("gpu_host_pressure_seconds_total", resource="io", waiting="some")
        self.assertTrue(before - 1e-6 < told < after + 1e-6, f"{before} <= {told} <= {after}")  # binary fractions

    def test_cpu_time_of_a_workload(self) -> None:
        for hierarchy, file in HIERARCHIES.items():
            with self.subTest(hierarchy=hierarchy), busy_process(hierarchy) as (pid, group), \
                    tempfile.TemporaryDirectory(prefix="gpumeter-host-") as folder:
                if not (group / file).exists():
                    self.skipTest(f"{hierarchy} does not count CPU time")
                put_into(Path(folder, "proc"), pid, f"/{UNIT}")
                with Daemon(simulated(Path(folder), pid, f"{folder}/proc")) as daemon:
                    labels = {"kind": "systemd_unit", "workload": UNIT}
                    first = wait_until(lambda: daemon.page().one("gpu_workload_cpu_seconds_total", **labels), "its CPU time counts")
                    later = wait_until(lambda: (now := daemon.page().one("gpu_workload_cpu_seconds_total", **labels)) > first and now,
                                       "it grows")
                    self.assertLessEqual(later, self.used(group / file) + 1e-9)  # a sum of floats
                    self.assertEqual(promtool_findings(daemon.fetch("/metrics", {"Accept": TEXT}).text), "")

    def used(self, file: Path) -> float:
        if file.name == "cpu.stat":
            return int(file.read_text().split()[1]) / 1e6
        return int(file.read_text()) / 1e9


if __name__ == "__main__":
    unittest.main(verbosity=2)
