"""A folder in which users may write. A file is its owner's word at most, and may change at any time."""
from __future__ import annotations

import contextlib
import os
import stat
import time
from typing import Callable, Dict, Iterator, NamedTuple, Optional, Tuple

from .pickles import Error

SECOND = 1_000_000_000  # in the nanoseconds of file systems
# Writers need milliseconds for a file, which they do not rename into place. A younger file may be torn.
YOUNG = SECOND
# Seconds of the processor that the files of one user may take in one look; its others wait for the next look. A real dump takes three at most.
_MOST_SECONDS = 10.0

Say = Callable[[str, str], None]  # takes a path and what is wrong with it; empty: it is well again


class Stamp(NamedTuple):
    """The state of a file in which its content is known."""
    inode: int
    size: int
    modified: int  # nanoseconds since 1970, by the clock of the file system
    owner: int


class Folder:
    """Follows no link at the end of a path. A missing folder is empty."""

    def __init__(self, path: str) -> None:
        try:
            self._folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            self._folder = -1

    def __enter__(self) -> "Folder":
        return self

    def __exit__(self, *_: object) -> None:
        if self._folder >= 0:
            os.close(self._folder)

    def names(self) -> Iterator[str]:
        """A user may add any number of them."""
        if self._folder >= 0:
            with os.scandir(self._folder) as entries:
                for entry in entries:
                    yield entry.name

    def look(self, name: str) -> Stamp:
        return _stamp_of(os.stat(name, dir_fd=self._folder, follow_symlinks=False))

    def read(self, name: str, most: int) -> Tuple[Stamp, Optional[bytes]]:
        """None: the file changed while it was read. O_NONBLOCK: a pipe in the folder must not stop the reader."""
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC, dir_fd=self._folder)
        with open(file, "rb", buffering=0) as opened:
            before = _stamp_of(os.fstat(file))
            if before.size > most:
                raise Error(f"has {before.size} bytes, {most} at the most")
            parts, left = [], before.size
            while left and (part := opened.read(left)):
                parts.append(part)
                left -= len(part)
            after = _stamp_of(os.fstat(file))
        return after, None if left or before != after else b"".join(parts)


def _stamp_of(status: os.stat_result) -> Stamp:
    if not stat.S_ISREG(status.st_mode):
        raise Error("is no plain file")
    if status.st_nlink != 1:  # the second link may be another user's
        raise Error("has more than one name")
    return Stamp(status.st_ino, status.st_size, status.st_mtime_ns, status.st_uid)


def reason(problem: Exception) -> str:
    return (problem.strerror or str(problem)) if isinstance(problem, OSError) else str(problem)


class Budget:
    """The time that the files of each user took in one look."""

    def __init__(self) -> None:
        self._spent: Dict[int, float] = {}

    def has(self, owner: int) -> bool:
        return self._spent.get(owner, 0.0) <= _MOST_SECONDS

    @contextlib.contextmanager
    def of(self, owner: int) -> Iterator[None]:
        started = time.thread_time()
        try:
            yield
        finally:
            self._spent[owner] = self._spent.get(owner, 0.0) + time.thread_time() - started
