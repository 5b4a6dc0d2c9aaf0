#!/usr/bin/env python3
"""Given a container that Debian's Docker runs on a simulated GPU, then the page has its name and image, from Docker's own socket. The
image holds busybox, because no registry of images is reached."""
from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "e2e"))
from harness import Daemon, wait_until  # noqa: E402

NEEDED = ("dockerd", "docker", "busybox")


def image(folder: Path) -> Path:
    (folder / "bin").mkdir(parents=True)
    shutil.copy(shutil.which("busybox") or "", folder / "bin/sleep")
    archive = folder.with_suffix(".tar")
    subprocess.run(["tar", "-C", folder, "-cf", archive, "."], check=True)
    return archive


@contextmanager
def running(command: list[str], log: Path) -> Iterator[None]:
    with log.open("w") as output, subprocess.Popen(command, stdout=output, stderr=output) as process:
        try:
            yield
        finally:
            process.terminate()
            process.wait(20)


def output(*command: str, **environment: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ, **environment})
    if done.returncode:
        raise AssertionError(f"{' '.join(command)}: {done.stderr}")
    return done.stdout.strip()


class ContainersTest(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="gpumeter-engine-")))
        self.archive = image(self.folder / "root")

    def labels(self, source: str, pid: int, container: str) -> dict[str, str]:
        (self.folder / "gpumeter.yaml").write_text(json.dumps({"containers": {"sources": [source]}, "collectors": {
            "simulated": {"enabled": True, "processes": [f"0={pid},busy=0.5,memory=1GiB"]}, "nvidia": {"enabled": False}}}))
        with Daemon(f"--config.file={self.folder}/gpumeter.yaml") as daemon:
            def found() -> dict[str, str]:
                return next((dict(labels) for _, labels in daemon.page().of("gpu_workload_info", container_id=container) if "container_name" in dict(labels)), {})
            wait_until(found, "the container is named", 20)
            return found()

    def test_docker(self) -> None:
        socket = f"unix://{self.folder}/docker.sock"
        command = ["dockerd", "--iptables=false", "--ip-forward=false", "--bridge=none", "--storage-driver=vfs", f"--data-root={self.folder}/data",
                   f"--exec-root={self.folder}/exec", f"--pidfile={self.folder}/pid", f"--host={socket}"]
        with running(command, self.folder / "docker.log"):
            wait_until(lambda: (self.folder / "docker.sock").exists() and output("docker", "version", DOCKER_HOST=socket), "Docker answers", 30)
            output("docker", "import", str(self.archive), "registry.example/bench:1.0", DOCKER_HOST=socket)
            started = output("docker", "run", "--detach", "--name=trainer", "--network=none", "registry.example/bench:1.0", "/bin/sleep", "600", DOCKER_HOST=socket)
            pid = int(output("docker", "inspect", "--format={{.State.Pid}}", "trainer", DOCKER_HOST=socket))
            labels = self.labels(f"{self.folder}/docker.sock", pid, started)
            self.assertEqual((labels["container_name"], labels["container_image"], labels["container_runtime"]), ("trainer", "registry.example/bench:1.0", "docker"))
            output("docker", "rm", "--force", "trainer", DOCKER_HOST=socket)


if __name__ == "__main__":
    missing = [name for name in NEEDED if not shutil.which(name)]
    if missing:
        print(f"skipped: {' and '.join(missing)} of Debian's docker.io and busybox-static not installed")
        sys.exit(77)
    ended = unittest.main(verbosity=2, exit=False).result
    print("Docker names its container" if ended.wasSuccessful() else "failed")
    sys.exit(not ended.wasSuccessful())
