"""Follows the Prometheus files of NCCL Inspector in a folder."""
from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Dict, List, Optional, Tuple

from .folder import SECOND, YOUNG, Budget, Folder, Say, Stamp, reason
from .owners import Owners, Place, Run
from .page import Page
from .pickles import Error

MOST_FILES = 512       # 64 GPUs of 8 instances
MOST_BYTES = 4 << 20   # some 10,000 lines of one file
MOST_KEYS = 64         # of one file. One with all operations, sizes and scopes would have 132; jobs have 5 to 20
KEPT = 3               # intervals without a dump after which values leave the page
_LONGEST_LINE = 1 << 16
_MOST_LABELS = 64

# Names of ncclFuncToString() in Inspector -> the label `op`.
_OPERATIONS = {"AllGather": "all_gather", "AllReduce": "all_reduce", "AlltoAll": "all_to_all", "Broadcast": "broadcast", "Gather": "gather",
               "Recv": "receive", "Reduce": "reduce", "Scatter": "scatter", "ReduceScatter": "reduce_scatter", "Send": "send"}
_UNITS = {"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
# Below how many bytes -> the label `size`. Inspector's buckets are one unit wide, so none of them crosses a bound.
_SIZES = ((1 << 16, "0-64KiB"), (1 << 20, "64KiB-1MiB"), (1 << 24, "1MiB-16MiB"), (1 << 28, "16MiB-256MiB"), (1 << 32, "256MiB-4GiB"),
          (math.inf, "4GiB and more"))
_BANDWIDTH, _DURATION = "ml_nccl_bus_bandwidth_bytes_per_second", "ml_nccl_operation_duration_seconds"
_RECORDED, _LOST = "ml_nccl_recorded_operations_total", "ml_nccl_lost_operations_total"
# Inspector's families of means -> its label of the operation, our family, and its unit: GB/s of 10^9 bytes, microseconds.
_MEANS = {"nccl_bus_bandwidth_gbs": ("collective", _BANDWIDTH, 1e9), "nccl_collective_exec_time_microseconds": ("collective", _DURATION, 1e-6),
          "nccl_p2p_bus_bandwidth_gbs": ("p2p_operation", _BANDWIDTH, 1e9), "nccl_p2p_exec_time_microseconds": ("p2p_operation", _DURATION, 1e-6)}
# Its families that count, if the job sets NCCL_INSPECTOR_PROM_DUMP_STATS -> our family and the label `kind`.
_COUNTS = {"nccl_collectives_total": (_RECORDED, "collective"), "nccl_collectives_dropped_total": (_LOST, "collective"),
           "nccl_p2p_total": (_RECORDED, "point_to_point"), "nccl_p2p_dropped_total": (_LOST, "point_to_point")}

_NUMBER = re.compile(r"\+?(-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|-?(?:inf|nan))(?=[ \t\r]|$)", re.ASCII | re.IGNORECASE)
_LABEL = re.compile(r'[ \t,]*([a-zA-Z_][a-zA-Z0-9_]*)[ \t]*=[ \t]*"([^"\\]*(?:\\.[^"\\]*)*)"', re.ASCII)
_BUCKET = re.compile(r"([0-9]{1,18})(?:-[0-9]{1,18})?([KMGT]?B)", re.ASCII)
# Only Inspector's own spelling of a UUID, so that a GPU has one file.
_NAME = re.compile("nccl_inspector_metrics_([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})[.]prom", re.ASCII)

Key = Tuple[str, str, str]  # op, size, scope: each of a closed set


@dataclass
class Content:
    """What a file says. Lines that share our labels have no weights: a bandwidth is their geometric mean and a duration their arithmetic mean, as
    Inspector's own are."""
    means: Dict[str, Dict[Key, float]] = field(default_factory=lambda: {_BANDWIDTH: {}, _DURATION: {}})
    counts: Dict[str, Dict[str, float]] = field(default_factory=lambda: {_RECORDED: {}, _LOST: {}})  # by kind, since the job's start
    complaint: str = ""  # about the first bad line: "line 3: ..."; empty: none


def parse(text: str) -> Content:
    """inspector_prom.cc of NCCL 2.28 to 2.30: two lines for each bucket, without HELP and TYPE, families interleaved. A bad line is skipped. Families
    of later versions are ignored."""
    content, keys = Content(), set()
    values: Dict[str, Dict[Key, List[float]]] = {_BANDWIDTH: {}, _DURATION: {}}
    for number, line in enumerate(text.split("\n"), 1):
        try:
            name, labels, value = _sample(line)
            if name in _COUNTS:
                family, kind = _COUNTS[name]
                content.counts[family][kind] = _good(value)
            elif name in _MEANS:
                operation, family, unit = _MEANS[name]
                key = _key(operation, labels, _good(value))
                if value == 0:  # Inspector has no value, because no operation of the bucket was timed
                    continue
                if key not in keys and len(keys) == MOST_KEYS:
                    raise Error(f"more than {MOST_KEYS} combinations of operation, size and scope")
                keys.add(key)
                values[family].setdefault(key, []).append(value * unit)
        except Error as problem:
            content.complaint = content.complaint or f"line {number}: {problem}"
    content.means[_DURATION] = {key: sum(found) / len(found) for key, found in values[_DURATION].items()}
    content.means[_BANDWIDTH] = {key: _geometric(found) for key, found in values[_BANDWIDTH].items()}
    return content


def _geometric(values: List[float]) -> float:
    """One value is its own mean, exactly."""
    return values[0] if len(values) == 1 else math.exp(sum(map(math.log, values)) / len(values))


def _sample(line: str) -> Tuple[str, Dict[str, str], float]:
    """The name is empty for a comment and an empty line."""
    line = line.strip(" \t\r")
    if not line or line.startswith("#"):
        return "", {}, 0.0
    if len(line) > _LONGEST_LINE:
        raise Error("is no sample of a metric")
    name = re.split("[{ \t]", line, maxsplit=1)[0]
    at, labels = len(name), {}
    if line.startswith("{", at):
        at, left = at + 1, _MOST_LABELS
        while left and (found := _LABEL.match(line, at)):
            labels.setdefault(found[1], re.sub(r"\\(.)", lambda escape: "\n" if escape[1] == "n" else escape[1], found[2]))
            at, left = found.end(), left - 1
        rest = line[at:].lstrip(" \t,")
        at = len(line) - len(rest) + 1 if rest.startswith("}") else -1
    number = _NUMBER.match(line[at:].lstrip(" \t")) if name and at >= 0 else None
    if not number:
        raise Error("is no sample of a metric")
    return name, labels, float(number[1])


def _good(value: float) -> float:
    if not 0 <= value < math.inf:
        raise Error("the value must be a number from 0 on")
    return value


def _key(operation: str, labels: Dict[str, str], value: float) -> Key:
    if not labels.get(operation):
        raise Error(f"has no label {operation}")
    size = labels.get("message_size", "")
    bucket = _BUCKET.fullmatch(size)
    if not bucket:
        raise Error(f'message_size must be a range such as "4-5GB", not "{size[:32]}"')
    lower = int(bucket[1]) * _UNITS[bucket[2]]
    scope = "node" if labels.get("n_nodes") == "1" else "network"
    return _OPERATIONS.get(labels[operation], "other"), next(label for below, label in _SIZES if lower < below), scope


@dataclass
class File:
    """`state` is the label of gpumeter_nccl_files: read, torn, stale, foreign, unknown_gpu or invalid."""
    state: str = "torn"
    stamp: Stamp = Stamp(0, 0, 0, 0)    # of `content`
    content: Optional[Content] = None   # of the last complete file
    error: str = ""                     # of this look
    said: str = ""                      # the last complaint
    place: Place = Place("", "")
    run: Run = Run("", "")


class Inspector:
    """The file of a GPU counts if its owner has a process on that GPU. The values are those of the last complete file."""

    def __init__(self, path: str, interval: int, say: Say) -> None:
        self._path, self._kept, self._say = path, interval * KEPT, say  # `interval`: nanoseconds between two dumps of a job
        self._folder_said = ""
        self._budget = Budget()
        self.files: Dict[str, File] = {}  # by name

    def look(self, owners: Owners, now: int) -> bool:
        """Reads the files that changed. `now`: nanoseconds since 1970. True if one is torn, so that another look in a second or two is worthwhile."""
        self._budget = Budget()
        names, complaint = [], ""
        try:
            with Folder(self._path) as folder:
                names = self._names_in(folder, owners)
                for name in names:
                    self._look_at(folder, name, owners, now, self.files.setdefault(name, File()))
        except OSError as problem:
            complaint = f"{self._path}: {reason(problem)}"
        if complaint != self._folder_said:
            self._folder_said = complaint
            self._say(self._path, complaint)
        self.files = {name: self.files[name] for name in names if name in self.files}
        return any(file.state == "torn" for file in self.files.values())

    @staticmethod
    def _names_in(folder: Folder, owners: Owners) -> List[str]:
        """Files of this machine's GPUs first: any user may add files with other names."""
        found: Dict[bool, List[str]] = {True: [], False: []}
        for name in folder.names():
            if is_page := _NAME.fullmatch(name):
                names = found[owners.place_of(is_page[1]) is not None]
                if len(names) < MOST_FILES:
                    names.append(name)
        return sorted((found[True] + found[False])[:MOST_FILES])

    def _look_at(self, folder: Folder, name: str, owners: Owners, now: int, file: File) -> None:
        file.error = ""
        try:
            file.state = self._judge(folder, name, owners, now, file)
        except (OSError, Error) as problem:
            file.state, file.error = "invalid", reason(problem)
        except MemoryError:
            file.state, file.error = "invalid", "needs more memory than the service has"
        if file.state not in ("read", "torn"):
            file.content = None
        if file.content:
            file.error = file.content.complaint
        if (file.content or file.state == "invalid") and file.said != file.error:
            file.said = file.error
            self._say(f"{self._path}/{name}", file.error)

    def _judge(self, folder: Folder, name: str, owners: Owners, now: int, file: File) -> str:
        """The owner is asked for before the content is, so that a stranger's files cost nothing."""
        stamp = folder.look(name)
        found = _NAME.fullmatch(name)
        place = owners.place_of(found[1]) if found else None
        if place is None:
            return "unknown_gpu"
        run = owners.run_of(stamp.owner, place.uuid)
        if run is None:
            return "foreign"
        file.place, file.run = place, run
        if now - stamp.modified > self._kept:
            return "stale"
        if file.content and stamp == file.stamp:
            return "read"
        if now - file.stamp.modified > self._kept:
            file.content = None
        if not self._budget.has(stamp.owner):
            return "torn"
        with self._budget.of(stamp.owner):
            return self._read(folder, name, stamp, now, file)

    @staticmethod
    def _read(folder: Folder, name: str, seen: Stamp, now: int, file: File) -> str:
        """Inspector truncates the file and writes it line by line. A file that is being written keeps the values of the dump before it while those are
        not stale."""
        stamp, data = folder.read(name, MOST_BYTES)
        if now - seen.modified < YOUNG or data is None or stamp != seen or not data.endswith(b"\n"):
            return "torn"
        file.content, file.stamp = parse(data.decode(errors="replace")), stamp
        return "read"

    def write(self, page: Page) -> None:
        for _, file in sorted(self.files.items()):
            is_bad = file.state == "read" and file.error
            page.add("gpumeter_nccl_files", 1, {"source": "inspector", "state": "invalid" if is_bad else file.state})
            if not file.content:
                continue
            gpu = {"gpu": file.place.gpu, "uuid": file.place.uuid, "partition": file.place.partition, "run": file.run.run, "user": file.run.user}
            page.add("ml_nccl_dump_timestamp_seconds", file.stamp.modified / SECOND, gpu)
            for family, means in file.content.means.items():
                for (op, size, scope), mean in sorted(means.items()):
                    page.add(family, mean, {**gpu, "op": op, "size": size, "scope": scope})
            for family, counts in file.content.counts.items():
                for kind, count in sorted(counts.items()):
                    page.add(family, count, {**gpu, "kind": kind})
