"""A folder whose files can be made to fail, for a test: tests/fakes/faulty_fs.py, mounted."""
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from harness import ROOT, wait_until

PROGRAM = ROOT / "tests/fakes/faulty_fs.py"


def missing() -> str:
    """Why no such folder can be had here; empty where it can."""
    if os.geteuid() != 0:
        return "mounting needs root"
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "there is no /dev/fuse"
    found = subprocess.run(["/usr/bin/python3", "-c", "import fusepy"], capture_output=True)
    if found.returncode != 0 or not shutil.which("fusermount3"):
        return "not installed: python3-fusepy fuse3"
    return ""


class Faulty:
    """`root` mirrors `backing`, and both are gone afterwards. A context manager."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="gpumeter-faulty-")
        self.backing, self.root = Path(self.folder.name, "backing"), Path(self.folder.name, "mount")
        self.backing.mkdir()
        self.root.mkdir()

    def __enter__(self) -> "Faulty":
        self.process = subprocess.Popen([sys.executable, "-B", PROGRAM, self.backing, self.root], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        wait_until(lambda: os.path.ismount(self.root), "the mirror is mounted", 20)
        return self

    def __exit__(self, *_) -> None:
        self.heal()
        subprocess.run(["umount", "--lazy", self.root], check=True)
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.folder.cleanup()

    def fail(self, kind: str, pattern: str) -> None:
        self._command(f"fail {kind} {pattern}")

    def heal(self) -> None:
        self._command("heal")

    def _command(self, line: str) -> None:
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "ok\n"
