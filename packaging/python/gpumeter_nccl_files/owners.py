"""The users of the machine's GPUs, by which a file is believed: the kernel knows its owner."""
from __future__ import annotations

from typing import Any, Dict, FrozenSet, List, NamedTuple, Optional


class Run(NamedTuple):
    user: str
    run: str  # empty: the processes work for several


class Place(NamedTuple):
    """A GPU of this machine or a part of one, as in the labels."""
    gpu: str
    uuid: str
    partition: str = ""  # empty: the whole GPU


class _Process(NamedTuple):
    uid: int
    owner: str
    run: Run
    uuids: FrozenSet[str]


class Owners:
    """The processes on the machine's GPUs, and those that left within the last minute, by the daemon's last answer."""

    def __init__(self, allowed: List[str]) -> None:
        self._allowed = set(allowed)  # names or uids in digits; empty: all users
        self._processes: List[_Process] = []
        self._places: Dict[str, Place] = {}  # by the digits of the UUID

    def update(self, processes: List[Dict[str, Any]]) -> None:
        """The rows of the daemon's /api/v1/processes."""
        self._processes = [_Process(int(row["uid"]), str(row["owner"]), _run_of(row), frozenset(str(device["uuid"]) for device in row["devices"]))
                           for row in processes if row["uid"] is not None]

    def update_places(self, series: List[Dict[str, Any]]) -> None:
        """The rows gpu_up and gpu_partition_info of the daemon's /api/v1/series."""
        places: Dict[str, Place] = {}
        for row in series:
            labels = row["labels"]
            uuid = labels.get("uuid" if row["name"] == "gpu_up" else "mig_uuid")
            if uuid:
                places[_digits_of(uuid)] = Place(labels["gpu"], labels["uuid"], labels.get("partition", ""))
        self._places = places

    def place_of(self, uuid: str) -> Optional[Place]:
        """The GPU or MIG instance with this UUID as CUDA and HIP print it, without a prefix: 16 bytes in digits, of AMD cards the 16 letters of the
        card's own id (unverified on hardware)."""
        digits = _digits_of(uuid)
        return self._places.get(digits) or self._places.get(bytes.fromhex(digits).decode("latin-1"))

    def run_of(self, uid: int, uuid: str = "") -> Optional[Run]:
        """The run of all the user's processes on this GPU, or on all. None: the user has no process there, or is not allowed."""
        own = [process for process in self._processes if process.uid == uid and (uuid in process.uuids if uuid else process.uuids)]
        if not own or not self._is_allowed(uid, own[0].owner):
            return None
        runs = {process.run for process in own}
        return runs.pop() if len(runs) == 1 else Run(own[0].owner, "")

    def _is_allowed(self, uid: int, user: str) -> bool:
        return not self._allowed or user in self._allowed or str(uid) in self._allowed


def _run_of(row: Dict[str, Any]) -> Run:
    """The run that a job reports, or else the workload's name."""
    return Run(str(row["user"]), str(row["run"])) if row["run"] else Run(str(row["owner"]), str(row["workload"] or "unattributed"))


def _digits_of(uuid: str) -> str:
    """The digits and letters of a UUID without its prefix: "GPU-00C0-FFEE" becomes "00c0ffee"."""
    return uuid[4 if uuid.startswith(("GPU-", "MIG-")) else 0:].replace("-", "").lower()
