#!/usr/bin/env python3
"""Given simulated GPUs with real processes on them, then the page has the right users, and the parts add up to the whole."""
import json
import os
import socket
import subprocess
import tempfile
import threading
import time
import unittest
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness import CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE, TEXT, Daemon, Page, free_port, key, may_give, promtool_findings, text_page, wait_until

UNIT = {"kind": "systemd_unit", "workload": "train.service"}
CONTAINER_ID = "0123456789abcdef" * 4
CONTAINER = {"kind": "container", "workload": CONTAINER_ID}
NOBODY = {"kind": "unattributed", "workload": "unattributed"}
GROUPS = {"unit": "/system.slice/train.service", "container": f"/system.slice/docker-{CONTAINER_ID}.scope"}


class Machine:
    """Sleeping processes, and a /proc that is the real one but for their groups, which a test cannot choose
    everywhere: links to what the kernel says, and a `cgroup` of the test's own."""

    def __init__(self, folder: Path):
        self.folder, self.procfs = folder, folder / "proc"
        self.running: dict[int, subprocess.Popen[bytes]] = {}
        self.add(1, "/init.scope")

    def add(self, pid: int, group: str) -> None:
        own = self.procfs / str(pid)
        own.mkdir(parents=True)
        for name in ("stat", "status", "comm", "environ"):
            (own / name).symlink_to(f"/proc/{pid}/{name}")
        (own / "cgroup").write_text(f"0::{group}\n")

    def start(self, group: str, **options: Any) -> int:
        process = subprocess.Popen(["/usr/bin/sleep", "600"], **options)
        self.running[process.pid] = process
        self.add(process.pid, group)
        return process.pid

    def end(self, *pids: int) -> None:
        for pid in pids:
            self.running[pid].kill()
            self.running.pop(pid).wait()

    def pid_file(self, name: str, pids: list[int]) -> str:
        path = self.folder / name
        fresh = path.with_suffix(".new")
        fresh.write_text("".join(f"{pid}\n" for pid in pids))
        fresh.rename(path)
        return str(path)


@contextmanager
def machine() -> Iterator[Machine]:
    with tempfile.TemporaryDirectory(prefix="gpumeter-machine-") as folder:
        made = Machine(Path(folder))
        try:
            yield made
        finally:
            made.end(*made.running)


@contextmanager
def engine(path: Path, *answers: bytes | None) -> Iterator[None]:
    """Docker's socket, of HTTP only as much as the daemon uses. None: it never answers. The last answer is given again."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()

        def serve():
            held = []
            for number in range(1 << 30):
                try:
                    held.append(server.accept()[0])
                except OSError:
                    return [waiting.close() for waiting in held]
                held[-1].recv(100)
                answer = answers[min(number, len(answers) - 1)]
                if answer is not None:
                    held[-1].sendall(b"HTTP/1.0 200 OK\r\n\r\n" + answer)
                    held.pop().close()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def config(folder: Path, on_gpus: list[str], events: list[str] | None = None, procfs: Path | None = None, sources: list[str] | None = None, **workloads: bool | list[str]) -> str:
    off = {"enabled": False}
    simulated = {"enabled": True, "devices": 2, "processes": on_gpus, "events": events or []}
    paths = {"procfs": str(procfs)} if procfs else {}
    path = folder / "gpumeter.yaml"  # JSON is YAML
    path.write_text(json.dumps({"workloads": workloads, "paths": paths, "containers": {"sources": sources or []},
                                "collectors": {"simulated": simulated, "nvidia": off, "amd": off}}))
    return f"--config.file={path}"


def shares(page: Page, gpu: str) -> dict[str, float]:
    return {dict(labels)["workload"]: value for (_, labels), value in page.of("gpu_workload_share_ratio", gpu=gpu).items()}


class WorkloadsTest(unittest.TestCase):
    def check_sums(self, page: Page) -> None:
        for gpu in "01":
            self.assertAlmostEqual(sum(shares(page, gpu).values()), 1, delta=1e-9)
            parts = sum(page.of("gpu_workload_energy_joules_total", gpu=gpu).values())
            whole = page.one("gpu_energy_joules_total", gpu=gpu)
            self.assertAlmostEqual(parts, whole, delta=1e-9 * whole)

    def test_the_parts_are_the_device_on_every_page(self) -> None:
        with machine() as m:
            units, contained = [m.start(GROUPS["unit"]) for _ in range(2)], m.start(GROUPS["container"])
            others = [m.start(GROUPS["container"])]
            flags = config(m.folder, [f"0={m.pid_file('units', units)},busy=0.25,memory=1GiB",
                                      f"0={contained},busy=0.5,memory=2GiB",
                                      f"1={m.pid_file('others', others)},busy=0,memory=3GiB"], procfs=m.procfs)
            began = time.time()
            with Daemon(flags) as daemon:
                wait_until(lambda: daemon.page().of("gpu_workload_share_ratio", gpu="0", **UNIT), "the unit is seen")
                for number in range(20):
                    page = daemon.page()
                    self.check_sums(page)
                    if number == 10:
                        m.end(units[0], *others)
                    time.sleep(0.3)
                self.assertEqual(promtool_findings(daemon.fetch("/metrics", {"Accept": TEXT}).text), "")
                wait_until(lambda: shares(daemon.page(), "1") == {CONTAINER_ID: 0, "unattributed": 1}, "nobody is on GPU 1")
                page = daemon.page()
                self.check_sums(page)
                self.assertFalse(page.of("gpu_workload_memory_used_bytes", gpu="1"))
                self.assertEqual(page.one("gpu_workload_memory_used_bytes", gpu="0", **UNIT), 1 << 30)
                self.assertEqual(page.one("gpu_workload_memory_used_bytes", gpu="0", **CONTAINER), 2 << 30)
                self.assertGreater(page.one("gpu_workload_energy_joules_total", gpu="1", **CONTAINER), 0)
                where = key("gpu_workload_energy_joules_total", gpu="0", uuid="SIM-1-0", **UNIT)
                self.assertIn(where, page)  # these labels and no others
                self.starts(page, began)
                self.info(page)

    def test_containers_have_the_names_that_their_engine_gives(self) -> None:
        """The first engine hangs: the page comes at once, and the second one's names follow. It is asked again when another
        container without a name uses a GPU."""
        other = "f" * 64
        first, renamed, second = ({"Id": container, "Names": [f"/{name}"], "Image": "bench:1"} for container, name in ((CONTAINER_ID, "a"), (CONTAINER_ID, "c"), (other, "b")))
        lists = [json.dumps(each).encode() for each in ([first], [renamed, second])]
        with machine() as m, engine(m.folder / "slow", None), engine(m.folder / "quick", *lists):
            pids = [m.start(GROUPS["container"])]
            flags = config(m.folder, [f"0={m.pid_file('pids', pids)},busy=0.5,memory=1GiB"], procfs=m.procfs,
                           sources=[f"{m.folder}/slow", f"{m.folder}/quick"])
            with Daemon(flags) as daemon:
                wait_until(lambda: self.named(daemon, CONTAINER_ID), "the container is named", 10)
                self.assertEqual(self.named(daemon, CONTAINER_ID), {"container_name": "a", "container_image": "bench:1"})
                asked = time.monotonic()
                daemon.page()
                self.assertLess(time.monotonic() - asked, 1)
                wait_until(lambda: "no complete answer within 2 s" in daemon.log, "the log names the engine that hangs", 10)
                pids.append(m.start(GROUPS["container"].replace(CONTAINER_ID, other)))
                m.pid_file("pids", pids)
                wait_until(lambda: self.named(daemon, other), "the second container is named", 20)
                self.assertEqual(self.named(daemon, CONTAINER_ID)["container_name"], "c")

    def named(self, daemon: Daemon, container: str) -> dict[str, str]:
        found = [dict(labels) for _, labels in daemon.page().of("gpu_workload_info", kind="container", workload=container)]
        return {name: value for labels in found for name, value in labels.items() if name in ("container_name", "container_image")}

    def starts(self, page: Page, began: float) -> None:
        for family in ("gpu_workload_energy_joules", "gpu_workload_busy_seconds"):
            self.assertLess(began, page.one(f"{family}_created", gpu="0", **UNIT), family)
            self.assertLess(page.one(f"{family}_created", gpu="0", **UNIT), time.time(), family)
        self.assertEqual(page.of("gpu_workload_energy_joules_created", **NOBODY), {})

    def info(self, page: Page) -> None:
        self.assertEqual(page.one("gpu_workload_info", unit="train.service", source="process", **UNIT), 1)
        self.assertEqual(page.one("gpu_workload_info", container_id=CONTAINER_ID, container_runtime="docker", **CONTAINER), 1)
        self.assertEqual(page.one("gpu_workload_info", **NOBODY), 1)

    def test_chosen_variables_are_labels_and_no_other_is_on_the_page(self) -> None:
        with machine() as m:
            usual = m.start(GROUPS["unit"], env={b"WANDB_API_KEY": b"s3cr3t", b"PROJECT": b"bert", b"WANDB_NAME": b"night run"})
            hostile = m.start(GROUPS["container"], env={b"PROJECT": b'x"} 1\ngpu_up{gpu="9"\xff', **{b"FILL%d" % i: b"s3cr3t" * 20_000 for i in range(3)},
                                                        b"WANDB_NAME": b"beyond 256 KiB"})
            flags = config(m.folder, [f"0={usual},busy=0.5", f"0={hostile},busy=0.5"], procfs=m.procfs, environment=["PROJECT", "WANDB_NAME"])
            with Daemon(flags) as daemon:
                self.assertEqual(self.variables(daemon, **UNIT), {"env_project": "bert", "env_wandb_name": "night run"})
                self.assertEqual(self.variables(daemon, **CONTAINER), {"env_project": 'x"} 1\ufffdgpu_up{gpu="9"\ufffd'})
                text = daemon.fetch("/metrics", {"Accept": TEXT}).text
                self.assertEqual(promtool_findings(text), "")
                self.assertNotIn("s3cr3t", text + daemon.log)

    @unittest.skipUnless(may_give(CAP_DAC_READ_SEARCH | CAP_SYS_PTRACE), "requires root with CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH")
    def test_variables_of_other_users_require_two_capabilities(self) -> None:
        with machine() as m:
            pid = m.start(GROUPS["unit"], env={"PROJECT": "bert"}, user=4711)
            flags = config(m.folder, [f"0={pid},busy=0.5"], procfs=m.procfs, environment=["PROJECT"])
            state = m.folder / "state"
            state.mkdir()
            os.chown(state, 4712, 4712)
            for given in ("+dac_read_search", "+dac_read_search,+sys_ptrace"):
                user = ["setpriv", "--reuid=4712", "--regid=4712", "--clear-groups", f"--inh-caps={given}", f"--ambient-caps={given}"]
                with Daemon(flags, f"--path.api={state}/api.sock", state=str(state), wrap=user) as daemon:
                    if "ptrace" in given:
                        self.assertEqual(self.variables(daemon, **UNIT), {"env_project": "bert"})
                    refused = "the environment of a process cannot be read; workloads like its own have no labels env_*"
                    wait_until(lambda: (refused in daemon.log) == ("ptrace" not in given), f"the log of {given}")

    def variables(self, daemon: Daemon, **workload: str) -> dict[str, str]:
        def known() -> dict[str, str]:
            return {name: value for _, labels in daemon.page().of("gpu_workload_info", **workload) for name, value in labels if name.startswith("env_")}
        return wait_until(known, f"the variables of {workload}")

    def test_they_leave_the_page_with_their_device(self) -> None:
        with machine() as m:
            flags = config(m.folder, [f"*={m.start(GROUPS['unit'])},busy=0.5"], ["lose 1 after 2s for 3s"], m.procfs)
            with Daemon(flags) as daemon:
                page = wait_until(lambda: (p := daemon.page()).one("gpu_up", gpu="1") == 0 and p, "GPU 1 is lost")
                self.assertFalse(shares(page, "1"))
                self.assertEqual(shares(page, "0"), {"train.service": 1, "unattributed": 0})
                page = wait_until(lambda: shares(p := daemon.page(), "1") and p, "GPU 1 is back")
                self.assertEqual(shares(page, "1"), {"train.service": 1, "unattributed": 0})
                only = text_page(daemon.fetch("/metrics?exclude[]=simulated", {"Accept": TEXT}).text)
                self.assertFalse(only.of("gpu_workload_share_ratio"))

    def test_processes_where_asked(self) -> None:
        with machine() as m:
            pid = m.start(GROUPS["unit"])
            flags = config(m.folder, [f"0={pid},busy=0.5,memory=1KiB"], procfs=m.procfs, processes=True)
            with Daemon(flags) as daemon:
                labels = {"gpu": "0", "uuid": "SIM-1-0", "pid": str(pid), "name": "sleep"}
                self.assertEqual(daemon.page().one("gpu_process_memory_used_bytes", **labels), 1024)
                wait_until(lambda: daemon.page().one("gpu_process_busy_seconds_total", **labels), "its time counts")
                m.end(pid)
                wait_until(lambda: not daemon.page().of("gpu_process_memory_used_bytes"), "it is gone")

    def test_nobody_is_told_where_not_wanted(self) -> None:
        with tempfile.TemporaryDirectory() as folder, Daemon(config(Path(folder), ["0=1"], enabled=False)) as daemon:
            self.assertFalse([name for name, _ in daemon.page() if name.startswith(("gpu_workload", "gpu_process"))])

    def test_a_machine_as_it_is(self) -> None:
        """The real /proc: the workload of this test depends on the machine; that it has one, or is unattributed, does not."""
        with machine() as m:
            pid = m.start("")
            with Daemon(config(m.folder, [f"0={pid},busy=0.5"])) as daemon:
                self.check_sums(daemon.page())
                self.assertEqual(max(shares(daemon.page(), "0").values()), 1)

    def test_a_bad_option_names_its_key(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            daemon = Daemon(config(Path(folder), ["0=1,busy=2"]), port=free_port(), wait=False)
            with daemon:
                self.assertEqual(daemon.process.wait(30), 2)
                self.assertIn('collectors.simulated.processes: "0=1,busy=2": busy must be a number from 0 to 1, not "2"', daemon.log)


if __name__ == "__main__":
    unittest.main()
