"""The lines for the daemon and their datagrams (see README.md)."""
from __future__ import annotations

import numbers
import socket
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple, Union

SOCKET = "/run/gpumeter/jobs.sock"  # unless GPUMETER_SOCKET names another

# The client does not send what the daemon would reject. Tags of a closed set: a call with another split, kind, direction or
# dtype does nothing, an unknown phase is "other". Free names (run, metric, framework, version, model): see clean().
SPLITS = frozenset({"train", "eval", "infer"})
KINDS = frozenset({"input", "output", "train"})
DIRECTIONS = frozenset({"max", "min"})
DTYPES = frozenset({"fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8", "fp4"})
STATUSES = frozenset({"success", "aborted"})
PHASES = frozenset({"data_loading", "h2d", "forward", "backward", "optimizer", "communication", "checkpoint_save",
                    "checkpoint_load", "eval", "compile", "init", "idle", "other"})
OUTSIDE_STEPS = frozenset({"checkpoint_save", "checkpoint_load", "eval", "compile", "init", "idle"})
NAME_BYTES = 64
LARGEST = 1e18

DATAGRAM_BYTES = 8192  # the limit of DogStatsD clients and agent on Unix sockets
LINE_VALUES = 256  # of at most 13 bytes: a line fits into a datagram with any name and tags
LINES = 120  # more than the kinds of lines that the daemon keeps of a run

Number = Union[int, float]
Key = Tuple[str, str, str]  # name, type, tags; an event is a name alone
Lines = Dict[Key, List[Number]]


def clean(name: object) -> str:
    """Printable UTF-8 of 1 to 64 bytes without DogStatsD's "|" and ",". A longer name ends in a hash of the whole name, so that long
    names with different ends stay distinct. The daemon shortens run names of other clients the same way."""
    kept = "".join(c if c.isprintable() and c not in "|," else "_" for c in str(name))
    whole = kept.encode()
    if len(whole) <= NAME_BYTES:
        return kept or "_"
    tail = f"~{fnv1a(whole):08x}"
    return whole[:NAME_BYTES - len(tail)].decode(errors="ignore") + tail


def fnv1a(data: bytes) -> int:
    """FNV-1a of 32 bits."""
    value = 0x811C9DC5
    for byte in data:
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return value


def chosen(value: str, choices: Iterable[str], what: str) -> str:
    if value not in choices:
        raise ValueError(f"{what} {value!r} is none of {' '.join(sorted(choices))}")
    return value


def number(value: Any, kind: str) -> Number:
    """Returns a finite real number of at most 1e18, negative only for a gauge. Raises for everything else, including tensors, because
    reading a tensor would wait for its GPU."""
    if type(value) is not int and type(value) is not float:
        if not isinstance(value, numbers.Real):
            raise TypeError(f"{type(value).__name__} is not a number")
        value = float(value)
    if not (-LARGEST if kind == "g" else 0) <= value <= LARGEST:  # nor is NaN
        raise ValueError(f"{value} is out of range")
    return value  # type: ignore[no-any-return]


def integer(environ: Mapping[str, str], *names: str) -> Optional[int]:
    texts = (environ.get(name, "") for name in names)
    return next((int(text) for text in texts if text.isascii() and text.isdigit() and len(text) < 10), None)


def event(title: str, text: str, tail: str) -> Key:
    return (f"_e{{{len(title.encode())},{len(text.encode())}}}:{title}|{text}{tail}", "", "")


def add(lines: Lines, key: Key, value: Number) -> bool:
    """Adds up counters, keeps the last value of gauges and each duration. Returns False if there is no room."""
    kind = key[1]
    held = lines.get(key)
    if held is None:
        if len(lines) >= LINES:
            return False
        lines[key] = [value]
    elif kind == "d":
        if len(held) >= LINE_VALUES:
            return False
        held.append(value)
    else:
        total = held[0] + value if kind == "c" else value
        if total > LARGEST:
            return False
        held[0] = total
    return True


def send(path: str, lines: Lines) -> None:
    """Sends `lines` and removes those that the daemon's queue accepted. The socket lives only for this call, so that a fork does not
    inherit it, a job that becomes a daemon does not close it, and it is not connected to a daemon that is gone."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
            out.setblocking(False)
            for keys, datagram in datagrams(lines):
                out.sendto(datagram, path)
                for key in keys:
                    del lines[key]
    except (OSError, ValueError, AttributeError):  # no daemon, a full queue, no path, or no Unix sockets
        pass


def datagrams(lines: Lines) -> List[Tuple[List[Key], bytes]]:
    """The fewest datagrams that hold these lines, each with the keys of its lines."""
    out: List[Tuple[List[Key], bytes]] = []
    for key, values in lines.items():
        text = _text(key, values)
        if out and len(out[-1][1]) + len(text) <= DATAGRAM_BYTES:
            keys, before = out[-1]
            out[-1] = (keys + [key], before + text)
        else:
            out.append(([key], text))
    return out


def _text(key: Key, values: List[Number]) -> bytes:
    name, kind, tags = key
    if not kind:
        return f"{name}\n".encode()
    packed = ":".join(format(value, ".7g") if kind == "d" else repr(value) for value in values)
    return f"{name}:{packed}|{kind}{tags}\n".encode()
