#!/usr/bin/env python3
"""A folder as it is, on FUSE, but for the files that a test lets hang: a read of one does not return until the test
says so, as of a driver that waits for its hardware, or of a server that is gone."""
from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def available() -> str:
    """Why it cannot be had here; empty where it can."""
    try:
        import fusepy  # noqa: F401
    except ImportError:
        return "python3-fusepy is not installed"
    if os.geteuid() != 0 or not os.access("/dev/fuse", os.W_OK) or not shutil.which("umount"):
        return "FUSE takes root and /dev/fuse"
    return ""


class HangingTree:
    """Shows `source` at `.path`; hang(name) and release(name) take names below it."""

    def __init__(self, source: Path) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="gpumeter-fuse-")
        self.path, self._control = Path(self._folder.name, "tree"), Path(self._folder.name, "hanging")
        self.path.mkdir()
        self._control.mkdir()
        self._server = subprocess.Popen([sys.executable, "-B", __file__, str(source), str(self.path), str(self._control)])

    def __enter__(self) -> "HangingTree":
        end = time.monotonic() + 20
        while not os.path.ismount(self.path):
            assert self._server.poll() is None and time.monotonic() < end, "FUSE does not start"
            time.sleep(0.02)
        return self

    def __exit__(self, *_: object) -> None:
        self.release_all()
        subprocess.run(["umount", "-l", str(self.path)], check=False)
        self._server.terminate()
        self._server.wait(20)
        self._folder.cleanup()

    def hang(self, name: str) -> None:
        (self._control / name.replace("/", "%")).touch()

    def release(self, name: str) -> None:
        (self._control / name.replace("/", "%")).unlink()

    def release_all(self) -> None:
        for name in list(self._control.iterdir()):
            name.unlink()


def serve(source: str, mountpoint: str, control: str) -> None:
    from fusepy import FUSE, FuseOSError, Operations

    class Passthrough(Operations):
        def getattr(self, path, fh=None):
            try:
                status = os.lstat(source + path)
            except OSError as error:
                raise FuseOSError(error.errno) from None
            keys = ("st_atime", "st_ctime", "st_gid", "st_mode", "st_mtime", "st_nlink", "st_size", "st_uid", "st_ino")
            return {key: getattr(status, key) for key in keys}

        def readdir(self, path, fh):
            return [".", "..", *os.listdir(source + path)]

        def readlink(self, path):
            return os.readlink(source + path)

        def open(self, path, flags):
            try:
                return os.open(source + path, flags & (os.O_RDONLY | os.O_NONBLOCK))
            except OSError as error:
                raise FuseOSError(error.errno) from None

        def read(self, path, size, offset, fh):
            switch = os.path.join(control, path.lstrip("/").replace("/", "%"))
            while os.path.exists(switch):
                time.sleep(0.02)
            try:
                return os.pread(fh, size, offset)
            except OSError as error:
                raise FuseOSError(error.errno or errno.EIO) from None

        def release(self, path, fh):
            os.close(fh)

    FUSE(Passthrough(), mountpoint, foreground=True, nothreads=False, direct_io=True, allow_other=True)


if __name__ == "__main__":
    serve(*sys.argv[1:])
