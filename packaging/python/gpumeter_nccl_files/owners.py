"""The users of the machine's GPUs, by which a file is believed: the kernel knows its owner."""
from __future__ import annotations

from typing import Any, Dict, FrozenSet, List, NamedTuple, Optional, Tuple

from .folder import SECOND

REMEMBERED = 60 * SECOND


class Run(NamedTuple):
    user: str
    run: str  # empty: the processes work for several


class Place(NamedTuple):
    """A GPU of this machine or a part of one, as in the labels."""
    gpu: str
    uuid: str
    partition: str = ""  # empty: the whole GPU


class _Process(NamedTuple):
    seen: int
    uid: int
    run: Run
    uuids: FrozenSet[str]


class Owners:
    """The processes on the machine's GPUs. A process counts until a minute after it left."""

    def __init__(self, allowed: List[str]) -> None:
        self._allowed = set(allowed)  # names or uids in digits; empty: all users
        self._seen: Dict[Tuple[int, int], _Process] = {}  # by pid and start time
        self._places: Dict[str, Place] = {}  # by the digits of the UUID

    def update(self, processes: List[Dict[str, Any]], now: int) -> None:
        """The rows of the daemon's /api/v1/processes. A row without a GPU or without its facts does not count."""
        for row in processes:
            if row.get("devices"):
                run = Run(str(row["user"]), str(row.get("run") or row.get("workload") or ""))
                uuids = frozenset(str(device["uuid"]) for device in row["devices"])
                self._seen[row["pid"], row["start_time"]] = _Process(now, row["uid"], run, uuids)

    def update_places(self, series: List[Dict[str, Any]]) -> None:
        """The rows gpu_up and gpu_partition_info of the daemon's /api/v1/series."""
        places: Dict[str, Place] = {}
        for row in series:
            labels = row["labels"]
            uuid = labels.get("uuid" if row["name"] == "gpu_up" else "mig_uuid")
            if uuid:
                places[_digits_of(uuid)] = Place(labels["gpu"], labels["uuid"], labels.get("partition", ""))
        self._places = places

    def forget(self, now: int) -> None:
        self._seen = {process: seen for process, seen in self._seen.items() if now - seen.seen <= REMEMBERED}

    def place_of(self, uuid: str) -> Optional[Place]:
        """The GPU or MIG instance with this UUID as CUDA and HIP print it, without a prefix: 16 bytes in digits, of AMD cards the 16 letters of the
        card's own id (unverified on hardware)."""
        digits = _digits_of(uuid)
        return self._places.get(digits) or self._places.get(bytes.fromhex(digits).decode("latin-1"))

    def run_of(self, uid: int, uuid: str = "") -> Optional[Run]:
        """The run of all the user's processes on this GPU, or on all. None: the user has no process there, or is not allowed."""
        runs = {process.run for process in self._seen.values()
                if process.uid == uid and (not uuid or uuid in process.uuids) and self._is_allowed(uid, process.run.user)}
        return runs.pop() if len(runs) == 1 else Run(min(runs).user, "") if runs else None

    def _is_allowed(self, uid: int, user: str) -> bool:
        return not self._allowed or user in self._allowed or str(uid) in self._allowed


def _digits_of(uuid: str) -> str:
    """The digits and letters of a UUID without its prefix: "GPU-00C0-FFEE" becomes "00c0ffee"."""
    return uuid[4 if uuid.startswith(("GPU-", "MIG-")) else 0:].replace("-", "").lower()
