"""The program gpumeter-nccl-files: asks the daemon who uses the GPUs, reads the files, and writes one page for the daemon's folder of pages."""
from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import re
import socket
import sys
import tempfile
import time
from typing import Any, Callable, Dict, List, NoReturn, Union

from .flight_recorder import FlightRecorder
from .folder import SECOND, Say
from .inspector import Inspector
from .owners import Owners
from .page import Page

NAME = "gpumeter-nccl-files"
_SOON = 2.0  # seconds: a file that is being written is complete in milliseconds, and judged when it is a second old
_MOST_ANSWER = 16 << 20  # bytes of an answer of the daemon
_PATIENCE = 5.0  # seconds for it
_PLACES = "/api/v1/series?match[]=gpu_up&match[]=gpu_partition_info"


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


def page_path(path: str, number: int) -> str:
    """nccl-files.prom, nccl-files-2.prom and so on."""
    name, end = os.path.splitext(path)
    return path if number == 1 else f"{name}-{number}{end}"


class Service:
    """One turn after the other. What fails is named once, until it is well again."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.owners = Owners(options.user)
        say = self.sayer("the flight recorder's dump")
        self.readers: List[Union[Inspector, FlightRecorder]] = [FlightRecorder(options.flight_recorder, say)] if options.flight_recorder else []
        if options.inspector:
            self.readers.append(Inspector(options.inspector, int(options.inspector_interval * SECOND), self.sayer("NCCL Inspector's file")))
        self.said: Dict[str, str] = {}
        self.pages = 0

    def turn(self) -> bool:
        """True if another look is worthwhile soon."""
        now = time.time_ns()
        self.attempt("the daemon cannot be asked who uses the GPUs; its last answer stays in force", self.options.api_socket,
                     self.ask_daemon)
        is_torn = any([reader.look(self.owners, now) for reader in self.readers])
        page = Page()
        for reader in self.readers:
            reader.write(page)
        self.attempt("the page cannot be written", self.options.page, lambda: self.write_pages(page.texts()))
        return is_torn

    def write_pages(self, texts: List[str]) -> None:
        for number, text in enumerate(texts, 1):
            write_page(page_path(self.options.page, number), text)
        self.remove_pages(len(texts))
        self.pages = len(texts)

    def remove_pages(self, kept: int = 0) -> None:
        for number in range(kept + 1, self.pages + 1):
            with contextlib.suppress(OSError):
                os.unlink(page_path(self.options.page, number))

    def ask_daemon(self) -> None:
        if self.options.inspector:
            self.owners.update_places(ask(self.options.api_socket, _PLACES)["series"])
        self.owners.update(ask(self.options.api_socket, "/api/v1/processes")["processes"])

    def attempt(self, what: str, path: str, act: Callable[[], None]) -> None:
        try:
            act()
            complaint = ""
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as problem:
            complaint = str(problem) or repr(problem)
        if self.said.get(path, "") != complaint:
            log(f"{what}: {path}: {complaint}" if complaint else f"{path}: well again")
        self.said[path] = complaint

    @staticmethod
    def sayer(what: str) -> Say:
        return lambda path, complaint: log(f"{what} is not read, or not all of it; it is tried again when it changes: {path}: {complaint}" if complaint
                                           else f"{what} is read without complaint again: {path}")


def log(text: str) -> None:
    """To the journal as a warning, or to the terminal."""
    text = re.sub(r"[\x00-\x1f\x7f]", "\ufffd", text)  # names and errors may hold a user's text
    sys.stderr.write(("<4>" if "JOURNAL_STREAM" in os.environ else f"{NAME}: ") + text.encode(errors="backslashreplace").decode() + "\n")
    sys.stderr.flush()


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{NAME}: {message}\nTry '{NAME} --help'.\n")


def options_of(arguments: List[str]) -> argparse.Namespace:
    parser = _Parser(NAME, description="Writes a page about the files of NCCL Inspector and of PyTorch's flight recorder.", allow_abbrev=False)
    parser.add_argument("--inspector", default="", metavar="PATH", help="Folder of NCCL Inspector's Prometheus files (NCCL_INSPECTOR_DUMP_DIR of the jobs)")
    parser.add_argument("--inspector-interval", type=float, default=30, metavar="SECONDS", help="Time between two of Inspector's dumps (default 30)")
    parser.add_argument("--flight-recorder", action="append", default=[], metavar="PREFIX",
                        help="Prefix of the dumps (TORCH_FR_DUMP_TEMP_FILE of the jobs), such as /var/log/torch/trace_rank_; may be repeated")
    parser.add_argument("--user", action="append", default=[], metavar="NAME", help="A user whose files are read, by name or uid (default: all)")
    parser.add_argument("--api-socket", default="/run/gpumeter/api.sock", metavar="PATH", help="The daemon's API (default /run/gpumeter/api.sock)")
    parser.add_argument("--page", default="/run/gpumeter/pages/nccl-files.prom", metavar="PATH",
                        help="The page (default /run/gpumeter/pages/nccl-files.prom)")
    parser.add_argument("--interval", type=float, default=10, metavar="SECONDS", help="Time between two looks (default 10)")
    parser.add_argument("--once", action="store_true", help="Look once, write the page and end")
    options = parser.parse_args(arguments)
    for at, prefix in enumerate(options.flight_recorder):
        if not prefix.startswith("/"):
            parser.error(f'--flight-recorder must be an absolute path, such as "/var/log/torch/trace_rank_", not "{prefix}"')
        if prefix in options.flight_recorder[:at]:
            parser.error(f'--flight-recorder must name each prefix once, not "{prefix}" twice')
    if options.inspector and not options.inspector.startswith("/"):
        parser.error(f'--inspector must be an absolute path, not "{options.inspector}"')
    if not options.inspector and not options.flight_recorder:
        parser.error("--inspector or --flight-recorder is required")
    if not 1 <= options.inspector_interval <= 86400:
        parser.error("--inspector-interval must be 1 to 86400 seconds")
    if not 1 <= options.interval <= 60:
        parser.error("--interval must be 1 to 60 seconds")
    return options


def missing_folders(options: argparse.Namespace) -> List[str]:
    folders = {os.path.dirname(prefix) for prefix in options.flight_recorder} | {options.inspector or "/"}
    return sorted(folder for folder in folders if not os.path.exists(folder))


def main(arguments: List[str]) -> int:
    """Ends by SIGTERM, with its page."""
    service = Service(options_of(arguments))
    # A job may create a folder later, so this is no error; a wrong path would show nothing at all.
    for folder in missing_folders(service.options):
        log(f"a folder of NCCL Inspector's files or the flight recorder's dumps does not exist yet: {folder}")
    try:
        while True:
            is_torn = service.turn()
            if service.options.once:
                return 0
            time.sleep(_SOON if is_torn else service.options.interval)
    finally:
        if not service.options.once:
            service.remove_pages()
