"""A node of Kubernetes without a kubelet: processes in pods' control groups on a simulated GPU, and what the page has of their pods."""
from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness import Daemon, wait_until
from own_group import put_into

UIDS = ["0f1e2d3c-1111-4222-8333-444455556666", "0f1e2d3c-1111-4222-8333-444455557777"]
IDS = ["a" * 64, "b" * 64]


def group(uid: str, container: str) -> str:
    return f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{uid.replace('-', '_')}.slice/cri-containerd-{container}.scope"


class Node:
    """A folder with a /proc, a kubelet's sockets and /var/log, and two processes in pods on GPU 0."""

    def __init__(self, folder: Path):
        self.folder, self.procfs, self.log = folder, folder / "proc", folder / "log"
        self.running = [subprocess.Popen(["sleep", "600"]) for _ in UIDS]
        put_into(self.procfs, 1, "/init.scope")
        for process, uid, container in zip(self.running, UIDS, IDS):
            put_into(self.procfs, process.pid, group(uid, container))

    def config(self, **kubernetes) -> str:
        off = {"enabled": False}
        users = [f"0={process.pid},busy=0.25,memory=1GiB" for process in self.running]
        section = {"pods_socket": f"{self.folder}/pods-api.sock", "pod_resources_socket": f"{self.folder}/kubelet.sock", "log_path": str(self.log), **kubernetes}
        path = self.folder / "gpumeter.yaml"
        path.write_text(json.dumps({"kubernetes": section, "paths": {"procfs": str(self.procfs)}, "collectors": {
            "simulated": {"enabled": True, "devices": 2, "processes": users}, "nvidia": off, "amd": off}}))
        return f"--config.file={path}"


@contextmanager
def node() -> Iterator[Node]:
    with tempfile.TemporaryDirectory(prefix="gpumeter-node-") as folder:
        made = Node(Path(folder))
        try:
            yield made
        finally:
            for process in made.running:
                process.kill()
                process.wait()


def names(daemon: Daemon, uid: str) -> dict[str, str]:
    """The labels k8s_* of a pod's gpu_workload_info, without the prefix."""
    found = [dict(labels) for _, labels in daemon.page().of("gpu_workload_info", kind="pod", workload=uid)]
    assert len(found) <= 1, found
    return {name[4:]: value for each in found for name, value in each.items() if name.startswith("k8s_")}


def wait_for_names(daemon: Daemon, uid: str, expected: dict[str, str]) -> None:
    try:
        wait_until(lambda: names(daemon, uid) == expected, f"{uid} is {expected}", 25)
    except AssertionError as error:
        raise AssertionError(f"{error}; it is {names(daemon, uid)}\n{daemon.log}") from None


def errors(daemon: Daemon, source: str) -> dict[str, float]:
    page = daemon.page().of("gpumeter_names_source_errors_total", source=source)
    return {dict(labels)["reason"]: value for (_, labels), value in page.items() if value}
