#!/usr/bin/env python3
"""The page at / in a headless Chromium: browser/*.test.mjs hold the checks. `./dev test` installs what they need."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "e2e"))
import at_once  # noqa: E402
from harness import Daemon, wait_until  # noqa: E402
from jobs import Folder  # noqa: E402

sys.path.insert(0, str(HERE.parent / "fixtures"))
from card_tree import CARDS, lay  # noqa: E402

BROWSER = HERE / "browser"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "google-chrome"))), "")
SKIPPED = 77
RUN = "<img src=x onerror=alert(1)>"
SECONDS = 240


class PageTest(unittest.TestCase):
    def test_in_a_browser(self):
        with Folder() as folder:
            pids = Path(folder.path, "pids")
            pids.touch()
            folder.configure(f"collectors:\n  simulated:\n    processes: [\"0={pids},busy=0.8,memory=1000000000\"]\n")
            events = ["--simulate-event=overheat 3 after 5s", "--simulate-event=lose 6 after 25s"]
            with Daemon("--simulate=8", f"--config.file={folder.config}", *events) as daemon:
                trainer = subprocess.Popen([sys.executable, str(HERE / "trainer.py"), folder.datagram, RUN])
                try:
                    pids.write_text(f"{trainer.pid}\n")
                    self.check("page.test.mjs", f"http://127.0.0.1:{daemon.port}/")
                finally:
                    trainer.kill()
                    trainer.wait()

    def test_gpus_that_are_not_read_in_a_browser(self):
        sysfs = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="gpumeter-test-")))
        card = sysfs / "bus/pci/devices/0000:0c:00.0"
        card.mkdir(parents=True)
        (card / "uevent").write_text("PCI_CLASS=30000\nPCI_ID=1002:73BF\n")
        with Daemon(f"--path.sysfs={sysfs}", "--no-collector.nvidia") as daemon:
            wait_until(lambda: "1002:73bf" in daemon.fetch("/api/v1/devices").text, "the bus was read", 10)
            self.check("unread.test.mjs", f"http://127.0.0.1:{daemon.port}/")

    def test_events_of_the_kernels_log_in_a_browser(self):
        folder = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="gpumeter-test-")))
        lay(folder / "sys", CARDS / "radeon_rx.card")
        config, log = folder / "gpumeter.yaml", folder / "kmsg"
        log.write_text("4,1,1,-;NVRM: Xid (PCI:0000:61:00): 119, pid=7, name=<script>alert(1)</script>, Timeout after 6s of waiting for RPC response\n")
        config.write_text(f"collectors: {{nvidia: {{enabled: false}}}}\nkernel: {{log: {log}}}\n")
        with Daemon(f"--path.sysfs={folder}/sys", f"--config.file={config}") as daemon:
            wait_until(lambda: "alert(1)" in daemon.fetch("/api/v1/events").text, "the log was read", 10)
            (card,) = json.loads(daemon.fetch("/api/v1/devices").body)["devices"]
            with log.open("a") as more:
                more.write(f"4,2,{time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000},-;amdgpu {card['pci_address']}: amdgpu: ring gfx_0.0.0 timeout, signaled seq=42, emitted seq=44\n")
            wait_until(lambda: "ring gfx" in daemon.fetch("/api/v1/events").text, "the line was read", 10)
            self.check("events.test.mjs", f"http://127.0.0.1:{daemon.port}/")

    def test_many_gpus_in_a_browser(self):
        with Daemon("--simulate=64") as daemon:
            self.check("many.test.mjs", f"http://127.0.0.1:{daemon.port}/")

    def test_no_gpu_in_a_browser(self):
        sysfs = self.enterContext(tempfile.TemporaryDirectory(prefix="gpumeter-test-"))
        with Daemon(f"--path.sysfs={sysfs}", "--no-collector.nvidia") as daemon:
            self.check("none.test.mjs", f"http://127.0.0.1:{daemon.port}/")

    def check(self, program: str, url: str) -> None:
        said = subprocess.run(["node", "--test", "--test-reporter=spec", str(BROWSER / program)], capture_output=True, text=True,
                              timeout=SECONDS, env={**os.environ, "PAGE_URL": url, "PAGE_CHROMIUM": CHROMIUM, "PAGE_RUN": RUN})
        print(said.stdout)
        self.assertEqual(said.returncode, 0, said.stderr)

    def test_the_lock_file_names_no_server(self):
        # An installation uses the machine's registry; the hashes prove that the package is the same.
        lock = (BROWSER / "package-lock.json").read_text()
        self.assertNotIn('"resolved"', lock)
        self.assertNotIn("://", lock)


if __name__ == "__main__":
    if not CHROMIUM:
        print("skipped: Chromium is not installed (./dev test installs Debian's)")
        sys.exit(SKIPPED)
    if not shutil.which("node") or not (BROWSER / "node_modules/playwright-core").exists():
        print("skipped: playwright-core is not installed (./dev test does, where npm and its registry can be reached)")
        sys.exit(SKIPPED)
    at_once.main(2)
