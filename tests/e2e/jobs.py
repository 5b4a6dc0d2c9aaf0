"""A daemon that accepts jobs in a separate folder, and the messages and results of a test."""
from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from harness import ROOT, Daemon, Page, wait_until
from own_group import put_into

sys.path.insert(0, str(ROOT / "packaging/python"))
RECORDED = ROOT / "tests/python/recorded_lines.txt"
PATIENCE = 30

# Run by the interpreter in front of the daemon: the descriptors named first become 3, 4 .. as systemd passes them.
PASS = """
import os, sys
count = int(sys.argv[1])
for place, number in enumerate(map(int, sys.argv[2:2 + count])):
    os.dup2(number, 3 + place)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(count), LISTEN_FDNAMES=":".join(["jobs"] * count))
os.execv(sys.argv[2 + count], sys.argv[2 + count:])
"""


class Folder:
    """Where the sockets are: open to every user, unlike a temporary folder."""

    def __init__(self, config: str = "") -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="gpumeter-jobs-")
        self.path = Path(self._folder.name)
        self.path.chmod(0o755)
        self.datagram, self.stream = str(self.path / "jobs.sock"), str(self.path / "stream.sock")
        self.config = str(self.path / "gpumeter.yaml")
        self.configure(config)

    def configure(self, more: str = "") -> None:
        Path(self.config).write_text(f"jobs:\n  socket: {self.datagram}\n  stream_socket: {self.stream}\n{more}")

    def __enter__(self) -> "Folder":
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def group(self, pid: int, path: str) -> None:
        """The process is in this control group for a daemon with `--path.procfs=FOLDER/proc`."""
        put_into(self.path / "proc", pid, path)

    def daemon(self, *arguments: str, **named: Any) -> Daemon:
        return Daemon("--simulate=1", f"--config.file={self.config}", *arguments, **named)

    def passed(self, sockets: list[socket.socket], **named: Any) -> Daemon:
        """The daemon with these as systemd's."""
        numbers = [sock.fileno() for sock in sockets]
        wrap = [sys.executable, "-c", PASS, str(len(numbers)), *map(str, numbers)]
        return self.daemon(wrap=wrap, pass_fds=numbers, **named)

    def send(self, *datagrams: str | bytes) -> None:
        """Waits where the queue is full."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
            out.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 18)
            for datagram in datagrams:
                out.sendto(datagram.encode() if isinstance(datagram, str) else datagram, self.datagram)

    def connection(self) -> socket.socket:
        out = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        out.connect(self.stream)
        return out


# Sends each line of its input as a datagram; "fork LINE" by a child that then ends without a word.
JOB = """
import os, socket, sys
out = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
for line in sys.stdin:
    line = line.strip()
    if line.startswith("fork ") and os.fork():
        os.wait()
    else:
        out.sendto(line.removeprefix("fork ").replace(";", "\\n").encode(), sys.argv[1])
        if line.startswith("fork "):
            os._exit(0)
    print(flush=True)
"""


class Job:
    """A process that sends given lines of the run `name`. Its times are whole Unix seconds, like those of the lines."""

    def __init__(self, folder: Folder, name: str, group: str = "") -> None:
        self.name, self.start = name, 0
        self.process = subprocess.Popen([sys.executable, "-c", JOB, folder.datagram], text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        if group:
            folder.group(self.process.pid, group)

    def __enter__(self) -> "Job":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            stream.close()

    def say(self, *lines: str, fork: bool = False) -> None:
        """Returns when they are sent; by a fork, when that has ended too."""
        tagged = ";".join(line + ("" if "#" in line else "|#") + f"{',' if '#' in line else ''}run:{self.name}" for line in lines)
        self.process.stdin.write(f"{'fork ' if fork else ''}{tagged}\n")
        self.process.stdin.flush()
        self.process.stdout.readline()

    def begin(self, *lines: str, fork: bool = False) -> None:
        """As the client does each minute. The first one is the start: on a busy machine, the process may have taken seconds to come up."""
        self.start = self.start or int(time.time())
        self.say(f"_e{{9,{len(self.name)}}}:run_start|{self.name}|d:{self.start}", *lines, fork=fork)

    def stop(self, status: str = "success") -> None:
        self.say(f"_e{{8,7}}:run_stop|{status}|d:{int(time.time())}")


def framed(payload: bytes) -> bytes:
    return len(payload).to_bytes(4, "little") + payload


def shown(daemon: Daemon, want: dict[str, float]) -> Page:
    """The page on which these series have exactly these values, as soon as there is one. A series is written as text:
    `ml_steps_total{run="a",split="train"}`; labels that are not named may be any."""
    def look() -> Page | None:
        page = daemon.page()
        return page if all(value(page, series) == number for series, number in want.items()) else None

    try:
        return wait_until(look, str(want), PATIENCE, every=0.1)
    except AssertionError as error:
        page = daemon.page()
        is_there = {series: value(page, series) for series in want}
        raise AssertionError(f"{error}\nis {is_there}\n{daemon.log}") from None


def value(page: Page, series: str) -> float | None:
    name, _, labels = series.rstrip("}").partition("{")
    return page.one(name, **dict(re.findall(r'(\w+)="([^"]*)"', labels)))


def dropped(page: Page) -> dict[str, float]:
    """By reason, those that are not 0."""
    found = page.of("gpumeter_jobs_dropped_total")
    assert found, "gpumeter_jobs_dropped_total is not there"
    return {dict(labels)["reason"]: number for (_, labels), number in found.items() if number}


def recorded(title: str) -> list[bytes]:
    """The datagrams or connections that a client sent, from the section with this title."""
    section = next(part for part in RECORDED.read_text().split("\n\n") if title in part.splitlines()[0])
    return [line.encode().decode("unicode_escape").encode("latin-1") for line in section.splitlines()[1:] if line]


def is_root() -> bool:
    return os.geteuid() == 0
