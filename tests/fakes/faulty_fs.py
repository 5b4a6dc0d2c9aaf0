#!/usr/bin/env python3
"""A mirror of a folder whose files can be made to fail: the faults of a driver, a disk or a network mount, on demand.

usage: faulty_fs.py BACKING MOUNT

Lines on stdin command it, each answered by a line: `fail KIND REGEX` makes every path of the mirror (from its root, "/x/y")
in which REGEX is found fail from now on; `heal` ends all faults, and calls that hang go on; `waiting` is answered by how many
hang now, the others by "ok". KIND: hang (the call waits), an errno by name (EIO), or empty (a read gives nothing). What fails
is what asks a driver or a disk: open (EPERM and EACCES alone, as a driver's other errors come with the read), create, read,
write and fsync. `CALL:KIND` makes that call alone fail: one of these, or getattr.
Needs /dev/fuse, the right to mount, and python3-fusepy.
"""
import errno
import os
import re
import sys
import threading

import fusepy


class Faults:
    """The operations that fail now."""

    def __init__(self):
        self.lock = threading.Lock()
        self.rules: list[tuple[re.Pattern, str, str, threading.Event]] = []
        self.waiting = 0

    def fail(self, kind: str, pattern: str) -> None:
        call, _, kind = kind.rpartition(":")
        with self.lock:
            self.rules = [*self.rules, (re.compile(pattern), call, kind, threading.Event())]

    def heal(self) -> None:
        with self.lock:
            rules, self.rules = self.rules, []
        for *_, healed in rules:
            healed.set()

    def meet(self, call: str, path: str) -> bool:
        """Raises or waits as the first rule for this call has it. True: what is read is to be empty."""
        for pattern, only, kind, healed in self.rules:
            if not is_meant(call, only, kind) or not pattern.search(path):
                continue
            if kind == "hang":
                self._wait(healed)
            elif kind != "empty":
                raise fusepy.FuseOSError(getattr(errno, kind))
            return kind == "empty"
        return False

    def _wait(self, healed: threading.Event) -> None:
        with self.lock:
            self.waiting += 1
        healed.wait()
        with self.lock:
            self.waiting -= 1


def is_meant(call: str, only: str, kind: str) -> bool:
    if only:
        return call == only
    return call != "getattr" and (call != "open" or kind in ("EPERM", "EACCES"))


class Mirror(fusepy.Operations):
    def __init__(self, backing: str, faults: Faults):
        self.backing, self.faults = backing, faults

    def real(self, path: str) -> str:
        return self.backing + path

    def getattr(self, path, fh=None):
        self.faults.meet("getattr", path)
        status = os.lstat(self.real(path))
        return {key: getattr(status, key) for key in
                ("st_mode", "st_size", "st_nlink", "st_uid", "st_gid", "st_mtime", "st_atime", "st_ctime")}

    def readlink(self, path):
        return os.readlink(self.real(path))

    def readdir(self, path, fh):
        return [".", "..", *os.listdir(self.real(path))]

    def open(self, path, flags):
        self.faults.meet("open", path)
        return os.open(self.real(path), flags)

    def create(self, path, mode, fi=None):
        self.faults.meet("create", path)
        return os.open(self.real(path), os.O_RDWR | os.O_CREAT, mode)

    def read(self, path, size, offset, fh):
        if self.faults.meet("read", path):
            return b""
        return os.pread(fh, size, offset)

    def write(self, path, data, offset, fh):
        self.faults.meet("write", path)
        return os.pwrite(fh, data, offset)

    def truncate(self, path, length, fh=None):
        os.truncate(self.real(path), length)

    def fsync(self, path, datasync, fh):
        self.faults.meet("fsync", path)
        os.fsync(fh)

    def release(self, path, fh):
        os.close(fh)

    def rename(self, old, new):
        os.rename(self.real(old), self.real(new))

    def unlink(self, path):
        os.unlink(self.real(path))

    def mkdir(self, path, mode):
        os.mkdir(self.real(path), mode)

    def chmod(self, path, mode):
        os.chmod(self.real(path), mode)


def obey(faults: Faults) -> None:
    for line in sys.stdin:
        word, *rest = line.rstrip("\n").split(" ", 2)
        if word == "fail":
            faults.fail(*rest)
        elif word == "heal":
            faults.heal()
        print(faults.waiting if word == "waiting" else "ok", flush=True)
    os._exit(0)  # the test is gone: the kernel ends the mirror, and calls that hang with it


def main() -> None:
    backing, mount = sys.argv[1:]
    faults = Faults()
    threading.Thread(target=obey, args=(faults,), daemon=True).start()
    try:
        fusepy.FUSE(Mirror(os.path.abspath(backing), faults), mount, foreground=True, nothreads=False, direct_io=True)
    except RuntimeError:  # as it ends where it is unmounted while a call is under way
        sys.exit(1)


if __name__ == "__main__":
    main()
