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
        """`kind` as the program has it: "EIO", or of one call "fsync:hang"."""
        assert self._command(f"fail {kind} {pattern}") == "ok"

    def heal(self) -> None:
        """To be called before a daemon is waited for: the kernel ends no process that is inside a call that hangs."""
        assert self._command("heal") == "ok"

    def hangs(self) -> bool:
        """A call hangs now."""
        return self._command("waiting") != "0"

    def _command(self, line: str) -> str:
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().rstrip("\n")
