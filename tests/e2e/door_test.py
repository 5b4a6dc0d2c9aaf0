#!/usr/bin/env python3
"""The folder of pages with the real daemon: what root, a user, and a user who means harm write into it, and what Prometheus then gets.

Requires root, because only root can become other users."""
from __future__ import annotations

import os
import signal
import tempfile
import time
import unittest
from pathlib import Path

from harness import Daemon, Page, promtool_findings, wait_until

ALICE, MALLORY = 4711, 65534
SECONDS = 2.0  # of a scrape, whatever lies in the folder
FORGED = {
    "up.prom": b"gpu_up{gpu=\"0\"} 0\n", "self.prom": b"gpumeter_build_info 7\n", "alert.prom": b"ALERTS{alertname=\"Fire\"} 1\n",
    "rule.prom": b"gpu:power:sum 9e9\n", "run.prom": b"ml_loss{user=\"alice\"} 0\n", "user.prom": b"bill{user=\"4711\"} 1\n",
    "bytes.prom": b"text{x=\"\xff\"} 1\n", "twice.prom": b"twice 1\ntwice 1\n", "late.prom": b"late 1 1700000000000\n",
    "same.prom": b"# TYPE disk_files counter\ndisk_files{disk=\"sda\"} 5\n", "half.prom": b"half{x=\"", "empty.prom": b"",
    "lines.prom": b"a{" + b"x=\"1\"," * 4000 + b"} 1\n", "deep.prom": b"".join(b"deep{n=\"%d\"} 1\n" % n for n in range(3000)),
}


def as_user(uid: int, work) -> int:
    """Runs work() as this user in a process of its own; returns its pid."""
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            os.umask(0o022)
            work()
            os._exit(0)
        except BaseException as error:
            print(error, flush=True)
            os._exit(1)
    return child


def put(folder: Path, name: str, text: bytes | str) -> None:
    """Replaces a page as scripts do."""
    draft = folder / f".{name}.draft-{os.geteuid()}"
    draft.write_bytes(text if isinstance(text, bytes) else text.encode())
    draft.rename(folder / name)


@unittest.skipUnless(os.geteuid() == 0, "only root can become other users")
class DoorTest(unittest.TestCase):
    def setUp(self) -> None:
        self.base = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="gpumeter-door-")))
        self.base.chmod(0o755)
        self.folder = self.base / "pages"
        self.folder.mkdir()
        self.folder.chmod(0o1777)
        self.config = self.base / "gpumeter.yaml"
        self.configure("")

    def configure(self, more: str) -> None:
        self.config.write_text(f"collectors: {{nvidia: {{enabled: false}}, amd: {{enabled: false}}, intel: {{enabled: false}}}}\njobs: {{enabled: false}}\n"
                               f"pages:\n  folders: [{self.folder}]\n{more}")

    def daemon(self) -> Daemon:
        return self.enterContext(Daemon("--simulate=1", f"--config.file={self.config}"))

    def run_as(self, uid: int, work) -> None:
        self.assertEqual(os.waitpid(as_user(uid, work), 0)[1], 0)

    def look(self, daemon: Daemon) -> Page:
        asked = time.monotonic()
        page = daemon.page()
        self.assertLess(time.monotonic() - asked, SECONDS)
        return page

    def up(self, daemon: Daemon, name: str) -> float | None:
        return self.look(daemon).one("gpumeter_page_up", page=name)

    def test_a_script_a_user_and_a_reload(self) -> None:
        put(self.folder, "disk.prom", "# HELP disk_files Files.\n# TYPE disk_files gauge\ndisk_files{disk=\"sda\"} 3\n")
        self.run_as(ALICE, lambda: put(self.folder, "app.prom", "# TYPE app_wait_seconds histogram\napp_wait_seconds_bucket{le=\"1\"} 1\n"
                                       "app_wait_seconds_bucket{le=\"+Inf\"} 2\napp_wait_seconds_sum 4\napp_wait_seconds_count 2\n# gpumeter: expires 6s\n"))
        daemon = self.daemon()
        wait_until(lambda: self.up(daemon, "app") == 1, "the page of a user is there")
        page = self.look(daemon)
        self.assertEqual(page.one("disk_files", disk="sda"), 3)
        self.assertEqual(page.types["app_wait_seconds"], "histogram")
        self.assertEqual(page.one("app_wait_seconds_bucket", le="+Inf", author=str(ALICE)), 2)
        text = daemon.fetch("/metrics").text
        self.assertIn("# HELP disk_files Files.\n# TYPE disk_files gauge\ndisk_files{disk=\"sda\"} 3\n", text)
        self.assertEqual(promtool_findings(text), "")
        wait_until(lambda: self.up(daemon, "app") == 0, "it leaves when it is too old", 20)
        page = self.look(daemon)
        self.assertEqual(page.of("app_wait_seconds_bucket"), {})
        self.assertGreaterEqual(page.one("gpumeter_page_age_seconds", page="app"), 6)
        self.assertEqual(page.one("gpumeter_page_up", page="disk"), 1)

        self.configure(f"  trusted: ['{ALICE}']\n  expires: 1h\n")
        self.run_as(ALICE, lambda: put(self.folder, "app.prom", "app_jobs 1\n"))
        daemon.send(signal.SIGHUP)
        wait_until(lambda: self.look(daemon).of("app_jobs") == {("app_jobs", ()): 1}, "a reload trusts the user")
        self.assertEqual(daemon.stop()[0], 0)

    def attack(self) -> None:
        for name, text in FORGED.items():
            put(self.folder, name, text)
        os.symlink("/etc/shadow", self.folder / "shadow.prom")
        os.symlink("/dev/zero", self.folder / "zero.prom")
        os.mkfifo(self.folder / "fifo.prom")
        (self.folder / "folder.prom").mkdir()
        with (self.folder / "sparse.prom").open("wb") as sparse:
            sparse.truncate(1 << 40)
        for number in range(300):
            put(self.folder, f"zz{number}.prom", f"many{{n=\"{number}\"}} 1\n")
        while True:  # a file that changes while it is read, and others that come and go
            with (self.folder / "torn.prom").open("wb") as torn:
                torn.write(b"torn 1\n" * 10)
                torn.truncate(3)
            put(self.folder, "flip.prom", b"# TYPE flip counter\nflip 1\n" if time.time_ns() % 2 else b"# TYPE flip gauge\nflip -1\n")

    def test_a_user_who_means_harm(self) -> None:
        put(self.folder, "disk.prom", "# TYPE disk_files gauge\ndisk_files{disk=\"sda\"} 3\n")
        daemon = self.daemon()
        wait_until(lambda: self.up(daemon, "disk") == 1, "root's page is there")
        attacker = as_user(MALLORY, self.attack)
        try:
            wait_until(lambda: self.up(daemon, "zero") is not None, "the attacker's files are seen", 30)
            end = time.monotonic() + 8
            while time.monotonic() < end:
                page = self.look(daemon)  # strictly parsed, each series once
                self.assertEqual(page.one("disk_files", disk="sda"), 3)
                self.assertEqual(page.one("gpu_up", gpu="0"), 1)
                self.assertEqual(page.one("gpumeter_part_up", part="pages"), 1)
                time.sleep(0.2)
        finally:
            os.kill(attacker, signal.SIGKILL)
            os.waitpid(attacker, 0)
        ups = {dict(labels)["page"]: value for (_, labels), value in page.of("gpumeter_page_up").items()}
        shown = {name for name, value in ups.items() if value == 1}
        self.assertLessEqual(len(ups), 64 + 1)
        self.assertLessEqual(shown, {"disk", "empty", "flip", "torn"} | {name for name in ups if name.startswith("zz")})
        for name in ("ALERTS", "gpu:power:sum", "ml_loss", "bill", "text", "twice", "late", "deep"):
            self.assertEqual(page.of(name), {}, name)
        for (_, labels), _value in page.of("many").items():
            self.assertIn(("author", "nobody"), labels)
        lines = [line for line in daemon.log.splitlines() if "a page is " in line]
        self.assertLess(len(lines), 60, "an attacker does not fill the log")
        self.assertEqual(daemon.stop()[0], 0)


if __name__ == "__main__":
    unittest.main()
