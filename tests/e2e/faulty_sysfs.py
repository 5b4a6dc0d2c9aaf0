"""A copy of a folder on FUSE whose files fail as a test wants them to, as a driver's files do: with an error, empty, or
not at all. Needs root, /dev/fuse and python3-fusepy; available() says whether they are there."""
import errno
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

try:
    import fusepy
except ImportError:
    fusepy = None

KINDS = {name: getattr(errno, name) for name in ("EIO", "EPERM", "EACCES", "EINVAL", "EOPNOTSUPP", "EBUSY", "ETIMEDOUT")}


def available() -> bool:
    return fusepy is not None and os.geteuid() == 0 and os.path.exists("/dev/fuse")


class FaultySysfs:
    """Mounts a view of `source`. `fault(kind, pattern)` makes the files whose path matches the pattern fail: an
    errno's name, "empty" or "hang", when they are read; "open:EPERM" when they are opened. `heal()` ends all of it."""

    def __init__(self, source: Path):
        self.folder = tempfile.TemporaryDirectory(prefix="gpumeter-fuse-")
        self.path = Path(self.folder.name, "sys")
        self.path.mkdir()
        self.rules_path = Path(self.folder.name, "rules")
        self.rules: list[tuple[str, str]] = []
        self.heal()
        self.server = subprocess.Popen([sys.executable, "-B", __file__, str(source), str(self.path), str(self.rules_path)])
        end = time.monotonic() + 20
        while not os.path.ismount(self.path):
            assert self.server.poll() is None and time.monotonic() < end, "FUSE does not mount"
            time.sleep(0.02)

    def fault(self, kind: str, pattern: str) -> None:
        self._write([*self.rules, (kind, pattern)])

    def heal(self) -> None:
        self._write([])

    def _write(self, rules: list[tuple[str, str]]) -> None:
        self.rules = rules
        fresh = self.rules_path.with_suffix(".new")
        fresh.write_text(json.dumps(rules))
        fresh.rename(self.rules_path)

    def close(self) -> None:
        self.heal()
        subprocess.run(["umount", "-l", str(self.path)], check=False)
        self.server.wait(20)
        self.folder.cleanup()


if fusepy is not None:

    class View(fusepy.Operations):
        def __init__(self, source: str, rules: str):
            self.source, self.rules_path = source, rules
            self.stamp, self.rules = 0, []

        def fault_of(self, path: str, when: str) -> str | None:
            stamp = os.stat(self.rules_path).st_mtime_ns
            if stamp != self.stamp:
                self.stamp, self.rules = stamp, json.loads(Path(self.rules_path).read_text())
            for kind, pattern in self.rules:
                is_open = kind.startswith("open:")
                if is_open == (when == "open") and re.search(pattern, path):
                    return kind.removeprefix("open:")
            return None

        def check(self, path: str, when: str) -> bool:
            """True: the file is to be empty."""
            while (fault := self.fault_of(path, when)) == "hang":
                time.sleep(0.02)
            if fault in KINDS:
                raise fusepy.FuseOSError(KINDS[fault])
            return fault == "empty"

        def getattr(self, path, fh=None):
            stat = os.lstat(self.source + path)
            return {name: getattr(stat, name) for name in ("st_mode", "st_nlink", "st_size", "st_uid", "st_gid", "st_mtime")}

        def readdir(self, path, fh):
            return [".", "..", *os.listdir(self.source + path)]

        def readlink(self, path):
            return os.readlink(self.source + path)

        def open(self, path, flags):
            self.check(path, "open")
            return os.open(self.source + path, flags & ~os.O_NONBLOCK)

        def read(self, path, size, offset, fh):
            return b"" if self.check(path, "read") else os.pread(fh, size, offset)

        def release(self, path, fh):
            os.close(fh)


if __name__ == "__main__":
    source_folder, mount_point, rules_file = sys.argv[1:]
    fusepy.FUSE(View(source_folder, rules_file), mount_point, foreground=True, nothreads=False, direct_io=True,
                attr_timeout=0, entry_timeout=0, ro=True)
