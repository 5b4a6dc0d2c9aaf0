"""The program gpumeter-flight-recorder: asks the daemon who uses the GPUs, reads the dumps, and writes one page for the daemon's folder of pages."""
from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import socket
import sys
import tempfile
import time
from collections import Counter
from typing import Any, Callable, Dict, List, NoReturn

from .follow import SECOND, FlightRecorder, Owners

NAME = "gpumeter-flight-recorder"
_SOON = 2.0  # seconds: a file that is being written is complete in milliseconds, and judged when it is a second old
_MOST_ANSWER = 16 << 20  # bytes of an answer of the daemon
_PATIENCE = 5.0  # seconds for it
# Seconds after which the daemon drops the page if the program no longer writes it. A look at hostile dumps may take a minute.
_EXPIRES = 300
# Names and texts as in collectors/api.
_FAMILIES = {
    "ml_flight_recorder_collective": "Sequence number of the rank's last collective operation in a process group at the time of PyTorch's dump, by state: "
    "enqueued, started, or completed. A rank that enqueued fewer operations than others of the group stands behind.",
    "ml_flight_recorder_dump_timestamp_seconds": "Unix time of the rank's dump by PyTorch's flight recorder.",
    "gpumeter_nccl_files": "Files of NCCL Inspector and of PyTorch's flight recorder in the configured places, by source and state. read: on the page; torn: "
    "still being written; stale: too old; foreign: the owner has no process on the GPU, or is not among nccl.users; unknown_gpu: no GPU of this machine; "
    "invalid: not readable, the log has the reason.",
}


def page_of(recorder: FlightRecorder) -> str:
    """The page in Prometheus' text format. A label without a value is left out."""
    samples: Dict[str, List[str]] = {family: [] for family in _FAMILIES}

    def add(family: str, value: float, labels: Dict[str, str]) -> None:
        text = ",".join(f'{name}="{_escaped(label)}"' for name, label in labels.items() if label)
        samples[family].append(f"{family}{{{text}}} {value!r}".removesuffix(".0"))

    for _, dump in sorted(recorder.dumps.items()):
        if dump.state != "read" or not dump.stamp:
            continue
        rank = {"run": dump.run.run, "user": dump.run.user, "prefix": dump.prefix, "rank": str(dump.rank)}
        add("ml_flight_recorder_dump_timestamp_seconds", dump.stamp.modified / SECOND, rank)
        for group in dump.groups:
            for state, sequence in group.sequences.items():
                add("ml_flight_recorder_collective", sequence, {**rank, "group": group.name, "description": group.description, "state": state})
    for state, count in sorted(Counter(dump.state for dump in recorder.dumps.values()).items()):
        add("gpumeter_nccl_files", count, {"source": "flight_recorder", "state": state})
    lines = [f"# gpumeter: expires {_EXPIRES}s"]
    for family, rows in samples.items():
        if rows:
            lines += [f"# HELP {family} {_FAMILIES[family]}", f"# TYPE {family} gauge", *rows]
    return "\n".join(lines) + "\n"


def _escaped(label: str) -> str:
    readable = label.encode("utf-8", "replace").decode()
    return readable.replace("\\", r"\\").replace('"', r'\"').replace("\n", r"\n")


def ask(path: str, target: str) -> Any:
    """The JSON that the daemon serves at a Unix socket. OSError or ValueError if it does not."""
    connection = http.client.HTTPConnection("localhost", timeout=_PATIENCE)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection.sock, contextlib.closing(connection):
        connection.sock.settimeout(_PATIENCE)
        connection.sock.connect(path)
        try:
            connection.request("GET", target, headers={"Accept": "application/json"})
            answer = connection.getresponse()
            text = answer.read(_MOST_ANSWER + 1)
        except http.client.HTTPException as problem:
            raise ValueError(f"no answer: {problem!r}") from None
    if answer.status != 200 or len(text) > _MOST_ANSWER:
        raise ValueError(f"the daemon answers {answer.status} with {len(text)} bytes")
    return json.loads(text)


def write_page(path: str, text: str) -> None:
    """By a rename, so that the daemon sees the whole page or the one before it."""
    folder, name = os.path.split(path)
    file, temporary = tempfile.mkstemp(prefix=f".{name}.", dir=folder or ".")
    try:
        with open(file, "wb") as out:
            os.fchmod(file, 0o644)
            out.write(text.encode())
        os.rename(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


class Service:
    """One turn after the other. What fails is named once, until it is well again."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.owners = Owners(options.user)
        self.recorder = FlightRecorder(options.prefix, self.say_dump)
        self.said: Dict[str, str] = {}

    def turn(self) -> bool:
        """True if another look is worthwhile soon."""
        now = time.time_ns()
        self.attempt("the daemon cannot be asked who uses the GPUs; dumps of its users are foreign after a minute", self.options.api_socket,
                     lambda: self.owners.update(ask(self.options.api_socket, "/api/v1/processes")["processes"], now))
        self.owners.forget(now)
        is_torn = self.recorder.look(self.owners, now)
        self.attempt("the page cannot be written", self.options.page, lambda: write_page(self.options.page, page_of(self.recorder)))
        return is_torn

    def attempt(self, what: str, path: str, act: Callable[[], None]) -> None:
        try:
            act()
            complaint = ""
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as problem:
            complaint = str(problem) or repr(problem)
        if self.said.get(path, "") != complaint:
            log(f"{what}: {path}: {complaint}" if complaint else f"{path}: well again")
        self.said[path] = complaint

    def say_dump(self, path: str, complaint: str) -> None:
        log(f"the flight recorder's dump is not read, or not all of it; it is tried again when it changes: {path}: {complaint}" if complaint
            else f"the flight recorder's dump is read without complaint again: {path}")


def log(text: str) -> None:
    """To the journal as a warning, or to the terminal."""
    sys.stderr.write(("<4>" if "JOURNAL_STREAM" in os.environ else f"{NAME}: ") + text.encode(errors="backslashreplace").decode() + "\n")
    sys.stderr.flush()


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{NAME}: {message}\nTry '{NAME} --help'.\n")


def options_of(arguments: List[str]) -> argparse.Namespace:
    parser = _Parser(NAME, description="Writes a page about the dumps of PyTorch's flight recorder.", allow_abbrev=False)
    parser.add_argument("--prefix", action="append", default=[], metavar="PATH",
                        help="Prefix of the dumps (TORCH_FR_DUMP_TEMP_FILE of the jobs), such as /var/log/torch/trace_rank_; may be repeated")
    parser.add_argument("--user", action="append", default=[], metavar="NAME", help="A user whose dumps are read, by name or uid (default: all)")
    parser.add_argument("--api-socket", default="/run/gpumeter/api.sock", metavar="PATH", help="The daemon's API (default /run/gpumeter/api.sock)")
    parser.add_argument("--page", default="/run/gpumeter/pages/flight-recorder.prom", metavar="PATH",
                        help="The page (default /run/gpumeter/pages/flight-recorder.prom)")
    parser.add_argument("--interval", type=float, default=10, metavar="SECONDS", help="Time between two looks (default 10)")
    parser.add_argument("--once", action="store_true", help="Look once, write the page and end")
    options = parser.parse_args(arguments)
    for at, prefix in enumerate(options.prefix):
        if not prefix.startswith("/"):
            parser.error(f'--prefix must be an absolute path, such as "/var/log/torch/trace_rank_", not "{prefix}"')
        if prefix in options.prefix[:at]:
            parser.error(f'--prefix must name each prefix once, not "{prefix}" twice')
    if not options.prefix:
        parser.error("--prefix is required")
    if not 1 <= options.interval <= 60:
        parser.error("--interval must be 1 to 60 seconds")
    return options


def missing_folders(prefixes: List[str]) -> List[str]:
    return sorted({folder for folder in (os.path.dirname(prefix) for prefix in prefixes) if not os.path.exists(folder)})


def main(arguments: List[str]) -> int:
    service = Service(options_of(arguments))
    # A job may create a folder later, so this is no error; a wrong path would show nothing at all.
    for folder in missing_folders(service.options.prefix):
        log(f"a folder of the flight recorder's dumps does not exist yet: {folder}")
    while True:
        is_torn = service.turn()
        if service.options.once:
            return 0
        time.sleep(_SOON if is_torn else service.options.interval)
