#!/usr/bin/env python3
"""The daemon without systemd, in each way in which it is shipped: as the DaemonSet's manifest has it, started by crun, and as the bundle's
`run`. After kill -9 and after SIGTERM, no counter falls, and what jobs sent is there or counted.

The container's root is the built daemon with its libraries instead of the image, which needs a package and Debian's mirror. User,
capabilities, mounts and arguments are the manifest's. tests/e2e/restart_test.py has the same by hand, booted_test.py the package."""
from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "e2e"), str(HERE.parents[1] / "packaging/image")]
from harness import BINARY, ROOT, Page, fetch, free_port, text_page, wait_until  # noqa: E402
from image_test import RUNTIMES  # noqa: E402
from jobs import dropped  # noqa: E402
from pod import daemon_set, runtime_config  # noqa: E402
from restart_test import SENDER, own_counters  # noqa: E402
from rootfs import add_system  # noqa: E402

NOBODY = 65534
NO_CONTAINER = "crun is not installed" if "crun" not in RUNTIMES else "crun starts containers as root only" if os.geteuid() != 0 else ""


class Way:
    """A way to start the daemon again and again with the same folders."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.state, self.socket = folder / "state", folder / "run/jobs.sock"

    def command(self) -> list[str]:
        raise NotImplementedError

    def process(self, started: subprocess.Popen) -> int:
        """The daemon's."""
        return started.pid

    def clean(self) -> None:
        """What is left of a daemon that was killed."""

    def page(self) -> Page:
        return text_page(fetch(self.port, "/metrics").text)

    def is_ready(self) -> bool:
        try:
            return fetch(self.port, "/-/ready").status == 200 and self.socket.is_socket()
        except OSError:
            return False

    @contextmanager
    def running(self, end: signal.Signals) -> Iterator[Page]:
        """Ends the daemon by this signal after the block."""
        log = self.folder / "log"
        with log.open("w") as output, subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=output, stderr=output) as started:
            try:
                wait_until(lambda: self.is_ready() or started.poll() is not None, "the daemon is ready")
                assert started.poll() is None, log.read_text()
                yield self.page
                os.kill(self.process(started), end)
                started.wait(30)
            finally:
                if started.poll() is None:
                    started.kill()
                self.clean()


class Container(Way):
    """The containers of the DaemonSet, the first of which gives the folders to the daemon's user."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.pod = daemon_set()
        self.sources = {volume: folder / volume for volume in ("config", "state", "run", "pod-logs")}
        for path in self.sources.values():
            path.mkdir()
        (self.sources["config"] / "gpumeter.yaml").write_text("log: {format: json}\n")
        self.sources["machine-id"] = folder / "machine-id"
        self.sources["machine-id"].write_text("0123456789abcdef0123456789abcdef\n")
        self.make_root()
        self.name = f"gpumeter-ways-{os.getpid()}"
        self.crun = [*RUNTIMES["crun"], "--root", str(folder / "crun")]
        subprocess.run([*self.bundle("folders"), "--bundle", str(folder / "folders"), f"{self.name}-folders"], check=True, timeout=60)

    def make_root(self) -> None:
        root = self.folder / "root"
        (root / "usr").mkdir(parents=True)
        (root / "etc/gpumeter").mkdir(parents=True)
        add_system(root)
        for program, name in ((BINARY, "gpumeter"), (shutil.which("chown"), "chown")):
            shutil.copy(program, root / "usr/bin" / name)
            for library in re.findall(r"(/\S+) \(0x", subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout):
                target = root / os.path.realpath(os.path.dirname(library)).lstrip("/") / os.path.basename(library)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(library, target)

    def bundle(self, name: str) -> list[str]:
        """The command that runs one of the manifest's containers, up to the bundle's folder and the identifier."""
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        (folder / "config.json").unlink(missing_ok=True)
        subprocess.run(["crun", "spec", "--bundle", str(folder)], check=True, timeout=60)
        config = json.loads((folder / "config.json").read_text())
        config["process"]["args"] = ["/usr/bin/gpumeter"]  # the image's entry point
        config["root"]["path"] = str(self.folder / "root")
        config = runtime_config(config, self.pod, name, self.sources)
        if name == "gpumeter":  # the only changes: another address, and a GPU that every machine has
            config["process"]["args"] = [word for word in config["process"]["args"] if "listen" not in word] + [
                f"--web.listen-address=127.0.0.1:{self.port}", "--simulate=1", "--metrics.detail=full"]
        (folder / "config.json").write_text(json.dumps(config))
        return [*self.crun, "run"]

    def command(self) -> list[str]:
        return [*self.bundle("gpumeter"), "--pid-file", str(self.folder / "pid"), "--bundle", str(self.folder / "gpumeter"), self.name]

    def process(self, started: subprocess.Popen) -> int:
        return int((self.folder / "pid").read_text())

    def clean(self) -> None:
        subprocess.run([*self.crun, "delete", "--force", self.name], capture_output=True, timeout=60)


class Bundle(Way):
    """Unpacked by a user, who may write only there: the state is in it, as `run` decides."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        built = subprocess.run([ROOT / "packaging/bundle/build", BINARY, folder], capture_output=True, text=True, timeout=120, check=True)
        subprocess.run(["tar", "-xzf", built.stdout.strip(), "-C", folder], check=True, timeout=60)
        [self.tree] = [path for path in folder.iterdir() if path.is_dir()]
        self.state = self.tree / "state"
        (folder / "run").mkdir()
        (folder / "gpumeter.yaml").write_text(f"jobs: {{socket: {self.socket}, stream_socket: ''}}\n")
        if os.geteuid() == 0:
            for path in (folder, *folder.rglob("*")):
                os.chown(path, NOBODY, NOBODY, follow_symlinks=False)

    def command(self) -> list[str]:
        user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"] if os.geteuid() == 0 else []
        return [*user, str(self.tree / "run"), f"--config.file={self.folder}/gpumeter.yaml", f"--web.listen-address=127.0.0.1:{self.port}",
                "--simulate=1", "--metrics.detail=full"]


class WaysTest(unittest.TestCase):
    def show(self, way: Way) -> None:
        steps = "ml_steps_total"
        with way.running(signal.SIGKILL) as page:
            run = [sys.executable, "-c", "import socket, sys, time; s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); s.connect(sys.argv[1]); "
                   "s.send(b'ml.steps:42|c|#run:last'); time.sleep(600)", str(way.socket)]
            job = subprocess.Popen(run)
            self.addCleanup(lambda: (job.kill(), job.wait()))
            wait_until(lambda: page().of(steps), "the run is on the page")
            wait_until(lambda: sum(page().of("gpu_energy_joules_total").values()) > 100, "the GPU has used energy")
            last = page()
            copy = way.state / "figures.copy"
            for _ in range(2):  # a copy that is being written was begun before the page
                copied = copy.stat().st_mtime_ns
                wait_until(lambda: copy.stat().st_mtime_ns > copied, "the page is in the copy", 20)
        with way.running(signal.SIGTERM) as page:
            self.at_least(last, wait_until(lambda: (now := page()).of(steps) and now, "the run goes on after kill -9"))
            sender = subprocess.Popen([sys.executable, "-c", SENDER, str(way.socket)], text=True, stdout=subprocess.PIPE)
            wait_until(lambda: sum(page().of(steps).values()) > 42, "more steps are on the page")
            last = page()
        sent, refused = sender.communicate(timeout=30)[0].split()
        self.assertEqual(refused, "EPIPE")
        with way.running(signal.SIGTERM) as page:
            now = wait_until(lambda: (now := page()).of(steps) and now, "the run goes on after SIGTERM")
            self.at_least(last, now)
            there, lost = sum(now.of(steps).values()) - 42, sum(dropped(now).values())
            print(f"{type(way).__name__}: {len(own_counters(now))} counters and the run's; steps sent: {sent}, there: {there:.0f}, counted as dropped: {lost:.0f}")
            self.assertEqual(there + lost, int(sent))

    def at_least(self, before: Page, after: Page) -> None:
        counters = {**own_counters(before), **{key: value for key, value in before.counters().items() if key[0].startswith("ml_")}}
        self.assertGreater(len(counters), 5)
        for key, value in counters.items():
            self.assertGreaterEqual(after.get(key, -1), value, key)

    def folder(self) -> Path:
        folder = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="gpumeter-ways-")))
        folder.chmod(0o755)
        return folder

    @unittest.skipIf(NO_CONTAINER, NO_CONTAINER)
    def test_as_the_manifest_says(self) -> None:
        self.show(Container(self.folder()))

    def test_the_bundle(self) -> None:
        self.show(Bundle(self.folder()))


if __name__ == "__main__":
    if unittest.main(verbosity=2, exit=False).result.wasSuccessful() is False:
        sys.exit(1)
    if NO_CONTAINER:
        print(f"skipped: {NO_CONTAINER}; the bundle is well")
        sys.exit(77)
