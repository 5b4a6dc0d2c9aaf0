"""Follows the dumps in folders in which users may write. A file is its owner's word at most, and may change at any time."""
from __future__ import annotations

import os
import re
import stat
import time
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

from . import dumps
from .pickles import Error

SECOND = 1_000_000_000  # in the nanoseconds of file systems
MOST_FILES = 64         # with one prefix
MOST_BYTES = 32 << 20   # 10,000 entries with stacks
KEPT = 3600 * SECOND    # how long a dump stays on the page
# Ranks dump together, because the first that times out tells the others through the job's store. A dump that is older than the last one of its
# prefix and owner by more than this is of an earlier stall.
TOGETHER = 600 * SECOND
# The processes of a younger dump are still there, or left within the minute for which they are remembered.
FRESH = 120 * SECOND
# torch needs milliseconds for a dump, which it does not rename into place. A younger file may be torn.
YOUNG = SECOND
REMEMBERED = 60 * SECOND
# Seconds of the processor that the dumps of one user may take in one look; its others wait for the next look. A real dump takes three at most.
_MOST_SECONDS = 10.0


class Run(NamedTuple):
    user: str
    run: str  # empty: the processes work for several


class Owners:
    """The processes on the machine's GPUs, by which a dump is believed: the kernel knows its owner. A process counts until a minute after it
    left."""

    def __init__(self, allowed: List[str]) -> None:
        self._allowed = set(allowed)  # names or uids in digits; empty: all users
        self._seen: Dict[Tuple[int, int], Tuple[int, int, Run]] = {}  # by pid and start time: when, the uid, the run

    def update(self, processes: List[Dict[str, Any]], now: int) -> None:
        """The rows of the daemon's /api/v1/processes. A row without a GPU or without its facts does not count."""
        for row in processes:
            if row.get("devices"):
                run = Run(str(row["user"]), str(row.get("run") or row.get("workload") or ""))
                self._seen[row["pid"], row["start_time"]] = now, row["uid"], run

    def forget(self, now: int) -> None:
        self._seen = {process: seen for process, seen in self._seen.items() if now - seen[0] <= REMEMBERED}

    def run_of(self, uid: int) -> Optional[Run]:
        """None: the user has no process on a GPU, or is not allowed."""
        runs = {run for _, owner, run in self._seen.values() if owner == uid and self._is_allowed(uid, run.user)}
        return runs.pop() if len(runs) == 1 else Run(min(runs).user, "") if runs else None

    def _is_allowed(self, uid: int, user: str) -> bool:
        return not self._allowed or user in self._allowed or str(uid) in self._allowed


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

    def read(self, name: str) -> Tuple[Stamp, Optional[bytes]]:
        """None: the file changed while it was read. O_NONBLOCK: a pipe in the folder must not stop the reader."""
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC, dir_fd=self._folder)
        with open(file, "rb", buffering=0) as opened:
            before = _stamp_of(os.fstat(file))
            if before.size > MOST_BYTES:
                raise Error(f"has {before.size} bytes, {MOST_BYTES} at the most")
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


def _reason(problem: Exception) -> str:
    return (problem.strerror or str(problem)) if isinstance(problem, OSError) else str(problem)


@dataclass
class Dump:
    """A file, and what the last look found. `state` is the label of gpumeter_nccl_files: read, torn, stale, foreign or invalid."""
    prefix: str
    rank: int
    state: str = "torn"
    stamp: Optional[Stamp] = None  # of the last reading
    groups: List[dumps.Group] = field(default_factory=list)
    run: Run = Run("", "")
    said: str = ""  # the last complaint


class FlightRecorder:
    """Files whose names are a prefix and the number of a rank. A dump counts if its owner has a process on a GPU of this machine when it is first
    seen, and keeps the run of that moment. The files of others take only places that are left, and the users who count share the places."""

    def __init__(self, prefixes: List[str], say: Callable[[str, str], None]) -> None:
        self._prefixes, self._say = prefixes, say  # `say`: a path and what is wrong with it; empty: it is well again
        self._folders_said: Dict[str, str] = {}
        self._spent: Dict[int, float] = {}  # seconds of this look by owner
        self.dumps: Dict[str, Dump] = {}  # by path

    def look(self, owners: Owners, now: int) -> bool:
        """Reads the dumps that changed. `now`: nanoseconds since 1970. True if one is torn, so that another look in a second or two is
        worthwhile."""
        present: Set[str] = set()
        self._spent.clear()
        for prefix in self._prefixes:
            path, _, base = prefix.rpartition("/")
            path, complaint = path or "/", ""
            try:
                with Folder(path) as folder:
                    for name in self._names_in(folder, path, base, owners):
                        place = os.path.join(path, name)
                        present.add(place)
                        dump = self.dumps.setdefault(place, Dump(prefix, int(name[len(base):])))
                        self._look_at(folder, name, owners, now, dump)
            except OSError as problem:
                complaint = f"{path}: {_reason(problem)}"
            if self._folders_said.get(path, "") != complaint:
                self._say(path, complaint)
            self._folders_said[path] = complaint
        self.dumps = {place: dump for place, dump in self.dumps.items() if place in present}
        self._drop_earlier()
        return any(dump.state == "torn" for dump in self.dumps.values())

    def _names_in(self, folder: Folder, path: str, base: str, owners: Owners) -> List[str]:
        """torch writes a rank without zeros in front."""
        is_dump = re.compile(re.escape(base) + "(?:0|[1-9][0-9]{0,8})").fullmatch
        users: Dict[int, str] = {}  # empty: does not count
        of_user: Dict[str, List[str]] = {"": []}
        for name in folder.names():
            if not is_dump(name):
                continue
            known = self.dumps.get(os.path.join(path, name))
            user = known.run.user if known and known.state == "read" else self._user_of(folder, name, owners, users)
            names = of_user.setdefault(user, [])
            if len(names) < MOST_FILES:
                names.append(name)
        others = of_user.pop("")
        shared = [names[turn] for turn in range(MOST_FILES) for names in of_user.values() if turn < len(names)]
        return sorted((shared + others)[:MOST_FILES])

    @staticmethod
    def _user_of(folder: Folder, name: str, owners: Owners, users: Dict[int, str]) -> str:
        try:
            owner = folder.look(name).owner
        except (OSError, Error):
            return ""
        if owner not in users:
            run = owners.run_of(owner)
            users[owner] = run.user if run else ""
        return users[owner]

    def _look_at(self, folder: Folder, name: str, owners: Owners, now: int, dump: Dump) -> None:
        """A dump that was read stays as it is, whatever its owner does later."""
        complaint = ""
        try:
            stamp = folder.look(name)
            is_old = now - stamp.modified > KEPT
            if not is_old and stamp == dump.stamp and dump.state not in ("torn", "foreign"):
                return
            run = owners.run_of(stamp.owner)
            if is_old:
                dump.state = "stale"
            elif run is None:
                dump.state = "foreign"
            else:
                dump.run = run if now - stamp.modified < FRESH else Run(run.user, "")
                self._read(folder, name, stamp, now, dump)
        except (OSError, Error) as problem:
            dump.state, complaint = "invalid", _reason(problem)
        except MemoryError:
            dump.state, complaint = "invalid", "needs more memory than the service has"
        if dump.state in ("read", "invalid") and dump.said != complaint:
            self._say(f"{dump.prefix}{dump.rank}", complaint)
            dump.said = complaint

    def _read(self, folder: Folder, name: str, seen: Stamp, now: int, dump: Dump) -> None:
        dump.state, spent, started = "torn", self._spent.get(seen.owner, 0.0), time.thread_time()
        if spent > _MOST_SECONDS:
            return
        try:
            self._take(folder, name, seen, now, dump)
        finally:
            self._spent[seen.owner] = spent + time.thread_time() - started

    @staticmethod
    def _take(folder: Folder, name: str, seen: Stamp, now: int, dump: Dump) -> None:
        dump.stamp, data = folder.read(name)
        if now - seen.modified < YOUNG or data is None or dump.stamp != seen:
            return
        # Its end shows whether it is complete: STOP of a pickle, or the bracket of a JSON document.
        is_whole = data.rstrip(b" \t\r\n").endswith(b"}") if data.startswith(b"{") else data.endswith(b".")
        if is_whole:
            dump.groups = dumps.parse(data)
            dump.state = "read"
        elif now - seen.modified >= FRESH:
            raise Error("the dump is not complete")

    def _drop_earlier(self) -> None:
        read = [(dump, dump.stamp) for dump in self.dumps.values() if dump.state == "read" and dump.stamp]
        latest: Dict[Tuple[str, int], int] = {}
        for dump, stamp in read:
            key = dump.prefix, stamp.owner
            latest[key] = max(latest.get(key, 0), stamp.modified)
        for dump, stamp in read:
            if latest[dump.prefix, stamp.owner] - stamp.modified > TOGETHER:
                dump.state = "stale"
