#!/usr/bin/env python3
"""Given an AMD APU or an Intel card, processes in control groups, and what the kernel prints of their DRM clients, then exactly these workloads.

The tree of the processes is made of files: no machine of the test has the GPU. The daemon reads it as it reads /proc."""
import os
import pwd
import sys
import tempfile
import unittest
from contextlib import contextmanager
from pathlib import Path

from harness import Daemon, Page, run, text_page, wait_until

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "fixtures"))
from card_tree import CARDS, INTEL_CARDS, lay  # noqa: E402

ADDRESS = "0000:c4:00.0"
XE_ADDRESS = "0000:03:00.0"
VRAM_USED, GTT_USED = 514580480, 3946811392  # fixtures/amd/apu.card
MIB = 1 << 20
CONTAINER_ID = "0123456789abcdef" * 4
SERVER, BROWSER, SHELL = "llama.service", CONTAINER_ID, "gdm.service"
XE_SERVER, XE_CONTAINER, XE_REST = (f'{{gpu="0",uuid="{XE_ADDRESS}",kind="{kind}",workload="{name}"}}' for kind, name in (
    ("systemd_unit", SERVER), ("container", CONTAINER_ID), ("unattributed", "unattributed")))
USER = next((user.pw_name for user in pwd.getpwall() if user.pw_uid == 1000), "1000")  # of all processes here
XE_WORKLOADS = [  # use before the first scan is unknown; the energy is the card's (fixtures/intel/arc_xe.card)
    f"gpu_workload_busy_seconds_total{XE_SERVER} 0",
    f"gpu_workload_busy_seconds_total{XE_CONTAINER} 0",
    f"gpu_workload_energy_joules_total{XE_SERVER} 0",
    f"gpu_workload_energy_joules_total{XE_CONTAINER} 0",
    f"gpu_workload_energy_joules_total{XE_REST} 81523.753173",
    f'gpu_workload_info{{kind="systemd_unit",workload="{SERVER}",unit="{SERVER}",user="{USER}",source="process"}} 1',
    f'gpu_workload_info{{kind="container",workload="{CONTAINER_ID}",container_id="{CONTAINER_ID}",container_runtime="docker",user="{USER}",source="process"}} 1',
    'gpu_workload_info{kind="unattributed",workload="unattributed",source="process"} 1',
    f"gpu_workload_memory_peak_bytes{XE_SERVER} 9.437184e+09",
    f"gpu_workload_memory_peak_bytes{XE_CONTAINER} 1.048576e+09",
    f"gpu_workload_memory_used_bytes{XE_SERVER} 9.437184e+09",
    f"gpu_workload_memory_used_bytes{XE_CONTAINER} 1.048576e+09",
    f"gpu_workload_share_ratio{XE_SERVER} 0.9",
    f"gpu_workload_share_ratio{XE_CONTAINER} 0.1",
    f"gpu_workload_share_ratio{XE_REST} 0",
]


class Processes:
    """A /proc of files."""

    def __init__(self, folder: Path):
        self.folder = folder / "proc"
        self.add(1, "/init.scope")

    def add(self, pid: int, group: str, start: int = 100) -> None:
        own = self.folder / str(pid)
        (own / "fd").mkdir(parents=True)
        (own / "fdinfo").mkdir()
        (own / "stat").write_text(f"{pid} (task) S 1 {pid} {pid} 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 {start} 0 0\n")
        (own / "status").write_text("Name:\ttask\nUid:\t1000\t1000\t1000\t1000\n")
        (own / "comm").write_text("task\n")
        (own / "cgroup").write_text(f"0::{group}\n")

    def client(self, pid: int, fd: int, client: int, vram: int, gtt: int, shared_gtt: int = 0, node: str = "renderD9128", **busy: int) -> None:
        """`busy`: seconds by engine."""
        engines = "".join(f"drm-engine-{engine}:\t{seconds * 10**9} ns\n" for engine, seconds in busy.items())
        regions = "".join(f"drm-total-{region}:\t{size >> 10} KiB\ndrm-shared-{region}:\t{shared >> 10} KiB\ndrm-resident-{region}:\t{size >> 10} KiB\n"
                          for region, size, shared in (("vram", vram, 0), ("gtt", gtt, shared_gtt)))
        self.descriptor(pid, fd, f"drm-driver:\tamdgpu\ndrm-client-id:\t{client}\ndrm-pdev:\t{ADDRESS}\npasid:\t32769\n{regions}"
                        f"drm-memory-vram:\t{vram >> 10} KiB\ndrm-memory-gtt: \t{gtt >> 10} KiB\namd-evicted-vram:\t0 KiB\n{engines}", node)

    def xe_client(self, pid: int, client: int, vram: int, gtt: int, compute: int, clock: int) -> None:
        """`compute`: cycles of the four compute engines together; `clock`: of one."""
        regions = "".join(f"drm-total-{region}:\t{size >> 10} KiB\ndrm-shared-{region}:\t0\ndrm-active-{region}:\t0\n"
                          f"drm-resident-{region}:\t{size >> 10} KiB\n" for region, size in (("system", 0), ("gtt", gtt), ("vram0", vram), ("stolen", 0)))
        cycles = "".join(f"drm-cycles-{engine}:\t{busy}\ndrm-total-cycles-{engine}:\t{clock}\n" for engine, busy in (("rcs", 0), ("ccs", compute)))
        self.descriptor(pid, 5, f"drm-driver:\txe\ndrm-client-id:\t{client}\ndrm-pdev:\t{XE_ADDRESS}\n{regions}{cycles}"
                        "drm-engine-capacity-ccs:\t4\n", "renderD9128")

    def descriptor(self, pid: int, fd: int, text: str, node: str) -> None:
        own = self.folder / str(pid)
        fresh = own / "fdinfo" / ".new"
        fresh.write_text(f"pos:\t0\nflags:\t02100002\nmnt_id:\t29\nino:\t1106\n{text}")
        fresh.rename(own / "fdinfo" / str(fd))
        link = own / "fd" / str(fd)
        if not link.is_symlink():
            link.symlink_to(f"/dev/dri/{node}")


@contextmanager
def machine(card: Path = CARDS / "apu.card"):
    with tempfile.TemporaryDirectory(prefix="gpumeter-drm-") as folder:
        root = Path(folder)
        lay(root / "sys", card)
        yield root, Processes(root)


def daemon_of(root: Path) -> Daemon:
    config = root / "gpumeter.yaml"
    config.write_text(f"collectors: {{amd: {{ids_file: {CARDS}/amdgpu.ids}}, intel: {{ids_file: {INTEL_CARDS}/pci.ids}}, nvidia: {{enabled: false}}}}\n"
                      "sampling: {normal: 1s}\n")
    return Daemon(f"--config.file={config}", f"--path.sysfs={root}/sys", f"--path.procfs={root}/proc")


def memory(page: Page) -> dict[str, float]:
    return {dict(labels)["workload"]: value for (_, labels), value in page.of("gpu_workload_memory_used_bytes").items()}


def busy(page: Page) -> dict[str, float]:
    return {dict(labels)["workload"]: value for (_, labels), value in page.of("gpu_workload_busy_seconds_total").items()}


class DrmClientsTest(unittest.TestCase):
    def test_the_workloads_of_an_apu(self) -> None:
        with machine() as (root, processes):
            processes.add(2, "/", 1)  # without descriptors
            processes.add(100, f"/system.slice/{SERVER}")
            processes.client(100, 5, 11, vram=5 * MIB, gtt=2500 * MIB, gfx=0, compute=100)
            processes.client(100, 6, 11, vram=5 * MIB, gtt=2500 * MIB, gfx=0, compute=100)  # a duplicate
            processes.add(101, f"/system.slice/{SERVER}")  # a child with the parent's descriptor
            processes.client(101, 5, 11, vram=5 * MIB, gtt=2500 * MIB, gfx=0, compute=100)
            processes.add(200, f"/system.slice/docker-{CONTAINER_ID}.scope")
            processes.client(200, 3, 12, vram=100 * MIB, gtt=300 * MIB, gfx=50, dec=3)
            with daemon_of(root) as daemon:
                page = wait_until(lambda: memory(p := daemon.page()) and p, "the clients are on the page")
                self.assertEqual(memory(page), {SERVER: 2505 * MIB, BROWSER: 400 * MIB})
                self.assertEqual(busy(page), {SERVER: 0, BROWSER: 0})  # use before the first scan is unknown
                page = wait_until(lambda: (p := daemon.page()).of("gpumeter_drm_scan_duration_seconds") and p, "the scan is on the page")
                self.assertEqual(page.one("gpumeter_drm_processes_inaccessible"), 0)
                self.assertEqual(page.one("gpumeter_drm_malformed_lines_total"), 0)
                self.assertGreater(page.one("gpumeter_drm_scan_duration_seconds"), 0)
                processes.client(100, 5, 11, vram=5 * MIB, gtt=2500 * MIB, gfx=1, compute=104)
                processes.client(100, 6, 11, vram=5 * MIB, gtt=2500 * MIB, gfx=1, compute=104)
                processes.client(101, 5, 11, vram=5 * MIB, gtt=2500 * MIB, gfx=1, compute=104)
                processes.client(200, 3, 12, vram=100 * MIB, gtt=300 * MIB, gfx=52, dec=4)
                page = wait_until(lambda: sum(busy(p := daemon.page()).values()) >= 6 and p, "the use is on the page")
                self.assertEqual(busy(page), {SERVER: 4, BROWSER: 2})
                shares = {dict(labels)["workload"]: value for (_, labels), value in page.of("gpu_workload_share_ratio").items()}
                self.assertEqual(shares, {SERVER: 4 / 6, BROWSER: 2 / 6, "unattributed": 0})

    def test_one_page_has_the_clients(self) -> None:
        with machine() as (root, processes):
            processes.add(100, f"/system.slice/{SERVER}")
            processes.client(100, 5, 11, vram=5 * MIB, gtt=2500 * MIB, gfx=0, compute=100)
            said = run("--once=0", f"--path.sysfs={root}/sys", f"--path.procfs={root}/proc", f"--path.state={root}")
            self.assertEqual(said.returncode, 0, said.stderr)
            self.assertEqual(memory(text_page(said.stdout)), {SERVER: 2505 * MIB})

    def test_shared_buffers_fit_the_device(self) -> None:
        used = VRAM_USED + GTT_USED
        with machine() as (root, processes):
            processes.add(100, f"/system.slice/{SERVER}")
            processes.client(100, 5, 11, vram=VRAM_USED & ~1023, gtt=3000 * MIB, compute=1)
            processes.add(300, f"/system.slice/{SHELL}")
            processes.client(300, 5, 13, vram=0, gtt=1000 * MIB, shared_gtt=1000 * MIB, gfx=1)
            with daemon_of(root) as daemon:
                page = wait_until(lambda: memory(p := daemon.page()) and p, "the clients are on the page")
                server = (VRAM_USED & ~1023) + 3000 * MIB
                self.assertEqual(memory(page).keys(), {SERVER, SHELL})
                self.assertAlmostEqual(memory(page)[SERVER], server, delta=1)
                self.assertAlmostEqual(memory(page)[SHELL], used - server, delta=1)

    def test_the_workloads_of_an_intel_card(self) -> None:
        with machine(INTEL_CARDS / "arc_xe.card") as (root, processes):
            processes.add(100, f"/system.slice/{SERVER}")
            processes.xe_client(100, 11, vram=9000 * MIB, gtt=500 * MIB, compute=10**12, clock=10**9)
            processes.add(200, f"/system.slice/docker-{CONTAINER_ID}.scope")
            processes.xe_client(200, 12, vram=1000 * MIB, gtt=0, compute=0, clock=10**9)
            with daemon_of(root) as daemon:
                wait_until(lambda: memory(daemon.page()), "the clients are on the page")
                wait_until(lambda: len(daemon.page().of("gpu_workload_info", user=USER)) == 2, "their workloads have their facts")
                self.assertEqual([line for line in daemon.fetch("/metrics").text.splitlines() if line.startswith("gpu_workload_")], XE_WORKLOADS)
                self.assertEqual(daemon.page().one("gpu_meter_source_info", quantity="busy", source="fdinfo"), 1)
                processes.xe_client(100, 11, vram=9000 * MIB, gtt=500 * MIB, compute=10**12 + 3 * 10**9, clock=2 * 10**9)
                processes.xe_client(200, 12, vram=1000 * MIB, gtt=0, compute=10**9, clock=2 * 10**9)
                page = wait_until(lambda: min(busy(p := daemon.page()).values()) > 0 and p, "the use is on the page")
                self.assertAlmostEqual(busy(page)[SERVER] / busy(page)[BROWSER], 3, delta=0.5)  # both on the same clock
                self.assertAlmostEqual(sum(busy(page).values()), page.one("gpu_engine_busy_seconds_total", engine="compute"))

    def test_a_sleeping_intel_card_is_not_scanned(self) -> None:
        with machine(INTEL_CARDS / "arc_xe.card") as (root, processes):
            processes.add(100, f"/system.slice/{SERVER}")
            processes.xe_client(100, 11, vram=9000 * MIB, gtt=0, compute=0, clock=10**9)
            with daemon_of(root) as daemon:
                wait_until(lambda: memory(daemon.page()) == {SERVER: 9000 * MIB}, "the client is on the page")
                (root / "sys/bus/pci/devices" / XE_ADDRESS / "power/runtime_status").write_text("suspended\n")
                page = wait_until(lambda: not memory(p := daemon.page()) and p, "the card sleeps")
                self.assertEqual(page.one("gpu_suspended"), 1)
                wait_until(lambda: not any(name.startswith("gpumeter_drm") for name, _ in daemon.page()), "the scans have ended")

    def test_a_read_that_hangs_hurts_nobody(self) -> None:
        """A pipe without a writer stands for a fdinfo that hangs in its driver."""
        with machine() as (root, processes):
            for pid, workload in ((100, SERVER), (300, SHELL)):
                processes.add(pid, f"/system.slice/{workload}")
                processes.client(pid, 5, pid, vram=0, gtt=10 * MIB, gfx=1)
            processes.add(200, "/system.slice/stuck.service")
            (root / "proc/200/fd/5").symlink_to("/dev/dri/renderD9128")
            os.mkfifo(root / "proc/200/fdinfo/5")
            with daemon_of(root) as daemon:
                wait_until(lambda: memory(daemon.page()) == {SERVER: 10 * MIB, SHELL: 10 * MIB}, "the others are on the page")
                wait_until(lambda: daemon.page().one("gpumeter_drm_processes_inaccessible") == 1, "the stuck process is counted")
                processes.client(300, 5, 300, vram=0, gtt=20 * MIB, gfx=1)
                wait_until(lambda: memory(daemon.page()) == {SERVER: 10 * MIB, SHELL: 20 * MIB}, "the scans go on")
                self.assertEqual(daemon.page().one("gpu_up"), 1)
                self.assertEqual(daemon.stop()[0], 0)

    def test_a_process_that_ends(self) -> None:
        with machine() as (root, processes):
            processes.add(100, f"/system.slice/{SERVER}")
            processes.client(100, 5, 11, vram=0, gtt=10 * MIB, gfx=1)
            with daemon_of(root) as daemon:
                wait_until(lambda: memory(daemon.page()) == {SERVER: 10 * MIB}, "the client is on the page")
                for file in sorted((root / "proc/100").rglob("*"), reverse=True):
                    file.unlink() if file.is_symlink() or file.is_file() else file.rmdir()
                (root / "proc/100").rmdir()
                wait_until(lambda: not memory(daemon.page()), "it has ended")

    def test_no_device_no_scan(self) -> None:
        with tempfile.TemporaryDirectory(prefix="gpumeter-drm-") as folder:
            root = Path(folder)
            (root / "sys").mkdir()
            Processes(root)
            with daemon_of(root) as daemon:
                self.assertFalse([name for name, _ in daemon.page() if name.startswith("gpumeter_drm")])


if __name__ == "__main__":
    unittest.main()
