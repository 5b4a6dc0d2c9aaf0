"""A dump of one rank by PyTorch's flight recorder (torch/csrc/distributed/c10d/FlightRecorder.hpp), as a pickle or as JSON."""
from __future__ import annotations

import json
import re
from typing import Any, Dict, List, NamedTuple, Optional

from . import pickles

MOST_GROUPS = 16  # of one rank; those that the rank created first
MOST_ENTRIES = 1 << 16  # that are searched for the groups' names; PyTorch's documentation sets 2,000
# A dict of a real dump has 22 keys. Lists may hold one dict often, so that a search must be short.
_MOST_SOUGHT = 64
_LONGEST_NAME = 64
_STATES = {"last_enqueued_collective": "enqueued", "last_started_collective": "started", "last_completed_collective": "completed"}


class Group(NamedTuple):
    """How far the rank is in one process group."""
    name: str         # the same on all ranks: "0"
    description: str  # "default_pg", "mesh_dp"; empty: none
    # Sequence numbers of collective operations from 1 on by state; a state is missing if there is none yet, or it is not recorded (`started`
    # needs TORCH_NCCL_ENABLE_TIMING).
    sequences: Dict[str, int]


def parse(data: bytes) -> List[Group]:
    """The groups. Their numbers differ between ranks, so that a group without an entry, which has its name, is omitted. pickles.Error names what
    is wrong."""
    root = _json(data) if data.startswith(b"{") else pickles.parse(data)
    status = _find(root, "pg_status")
    if status is None:
        raise pickles.Error("the dump has no pg_status, as those of PyTorch before 2.4")
    sequences: Dict[int, Dict[str, int]] = {}
    for key, states in _pairs(status, MOST_GROUPS):
        number = _integer(key)
        found = {name: _integer(_find(states, key)) for key, name in _STATES.items()}
        if number is not None:  # -1 is torch's word for none
            sequences[number] = {name: value for name, value in found.items() if value is not None and value >= 0}
    groups: Dict[int, Group] = {}
    for entry in _members(_find(root, "entries"), MOST_ENTRIES):
        number, names = _integer(_find(entry, "pg_id")), _members(_find(entry, "process_group"), 2)
        if number is not None and number not in groups and sequences.get(number) and len(names) == 2 and names[0] and isinstance(names[0], str):
            description = "" if names[1] == "undefined" else _name(names[1])  # torch's default
            groups[number] = Group(_name(names[0]), description, sequences[number])
    if not groups:
        raise pickles.Error("the dump has no process group with a name and a last operation")
    return [groups[number] for number in sorted(groups)]


def _json(data: bytes) -> Any:
    if sum(map(data.count, (b",", b"[", b"{"))) > pickles.MOST_VALUES:
        raise pickles.Error(f"more than {pickles.MOST_VALUES} values")
    try:
        return json.loads(data.decode(errors="replace"), parse_int=_bounded)
    except (ValueError, RecursionError):
        raise pickles.Error("the dump is no complete JSON document") from None


def _bounded(digits: str) -> int:
    if len(digits) > 20:  # Python's time for more grows by the square
        raise ValueError("an integer of more than 64 bits")
    return int(digits)


def _find(value: Any, key: str) -> Any:
    """None if the value is no dict, or has no such key among the first. As in Python, the last of equal keys counts."""
    if isinstance(value, dict):
        return value.get(key)
    return next((found for name, found in reversed(_pairs(value, _MOST_SOUGHT)) if isinstance(name, str) and name == key), None)


def _pairs(value: Any, most: int) -> "List[tuple[Any, Any]]":
    if isinstance(value, pickles.Pairs):
        return list(zip(value[:2 * most:2], value[1:2 * most:2]))
    return list(value.items())[:most] if isinstance(value, dict) else []


def _members(value: Any, most: int) -> List[Any]:
    return list(value[:most]) if isinstance(value, (list, tuple)) and not isinstance(value, pickles.Pairs) else []


def _integer(value: Any) -> Optional[int]:
    """PyTorch prints the numbers of JSON as texts. Programs that convert a pickle print numbers."""
    if isinstance(value, str) and re.fullmatch("-?[0-9]{1,18}", value):
        return int(value)
    return value if type(value) is int else None


def _name(text: Any) -> str:
    cut = text.encode(errors="replace")[:_LONGEST_NAME].decode(errors="ignore") if isinstance(text, str) else ""
    return re.sub(r"[\x00-\x1f]", "\ufffd", cut)
