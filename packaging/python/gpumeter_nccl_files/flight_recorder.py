"""Follows the dumps of PyTorch's flight recorder."""
from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import Dict, List, Optional, Set, Tuple

from . import flight_dump
from .folder import SECOND, YOUNG, Budget, Folder, Say, Stamp, reason
from .owners import Owners, Run
from .page import Page
from .pickles import Error

MOST_FILES = 64         # with one prefix
MOST_BYTES = 32 << 20   # 10,000 entries with stacks
KEPT = 3600 * SECOND    # how long a dump stays on the page
# Ranks dump together, because the first that times out tells the others through the job's store. A dump that is older than the last one of its
# prefix and owner by more than this is of an earlier stall.
TOGETHER = 600 * SECOND
# The processes of a younger dump are still there, or left within the minute for which they are remembered.
FRESH = 120 * SECOND


@dataclass
class Dump:
    """A file, and what the last look found. `state` is the label of gpumeter_nccl_files: read, torn, stale, foreign or invalid."""
    prefix: str
    rank: int
    state: str = "torn"
    stamp: Optional[Stamp] = None  # of the last reading
    groups: List[flight_dump.Group] = field(default_factory=list)
    run: Run = Run("", "")
    said: str = ""  # the last complaint


class FlightRecorder:
    """Files whose names are a prefix and the number of a rank. A dump counts if its owner has a process on a GPU of this machine when it is first
    seen, and keeps the run of that moment. The files of others take only places that are left, and the users who count share the places."""

    def __init__(self, prefixes: List[str], say: Say) -> None:
        self._prefixes, self._say = prefixes, say
        self._folders_said: Dict[str, str] = {}
        self._budget = Budget()
        self.dumps: Dict[str, Dump] = {}  # by path

    def look(self, owners: Owners, now: int) -> bool:
        """Reads the dumps that changed. `now`: nanoseconds since 1970. True if one is torn, so that another look in a second or two is
        worthwhile."""
        present: Set[str] = set()
        self._budget = Budget()
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
                complaint = f"{path}: {reason(problem)}"
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
            dump.state, complaint = "invalid", reason(problem)
        except MemoryError:
            dump.state, complaint = "invalid", "needs more memory than the service has"
        if dump.state in ("read", "invalid") and dump.said != complaint:
            self._say(f"{dump.prefix}{dump.rank}", complaint)
            dump.said = complaint

    def _read(self, folder: Folder, name: str, seen: Stamp, now: int, dump: Dump) -> None:
        dump.state = "torn"
        if self._budget.has(seen.owner):
            with self._budget.of(seen.owner):
                self._take(folder, name, seen, now, dump)

    @staticmethod
    def _take(folder: Folder, name: str, seen: Stamp, now: int, dump: Dump) -> None:
        dump.stamp, data = folder.read(name, MOST_BYTES)
        if now - seen.modified < YOUNG or data is None or dump.stamp != seen:
            return
        # Its end shows whether it is complete: STOP of a pickle, or the bracket of a JSON document.
        is_whole = data.rstrip(b" \t\r\n").endswith(b"}") if data.startswith(b"{") else data.endswith(b".")
        if is_whole:
            dump.groups = flight_dump.parse(data)
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

    def write(self, page: Page) -> None:
        for _, dump in sorted(self.dumps.items()):
            page.add("gpumeter_nccl_files", 1, {"source": "flight_recorder", "state": dump.state})
            if dump.state != "read" or not dump.stamp:
                continue
            rank = {"run": dump.run.run, "user": dump.run.user, "prefix": dump.prefix, "rank": str(dump.rank)}
            page.add("ml_flight_recorder_dump_timestamp_seconds", dump.stamp.modified / SECOND, rank)
            for group in dump.groups:
                for state, sequence in group.sequences.items():
                    page.add("ml_flight_recorder_collective", sequence, {**rank, "group": group.name, "description": group.description, "state": state})
