"""A socket like the daemon's, a clock set by the test, and the client itself."""
from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

CLIENT = Path(__file__).resolve().parent.parent.parent / "packaging/python"
sys.path.insert(0, str(CLIENT))
import gpumeter  # noqa: E402

STARTED = 1763740800  # seconds of the wall's clock, at which every run of a test begins


class Receiver:
    """A bound socket with the kernel's queue. Without calls of datagrams() it acts like a frozen daemon."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self.path = f"{self._folder.name}/jobs.sock"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(self.path)
        self._socket.setblocking(False)

    def __enter__(self) -> "Receiver":
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()
        self._folder.cleanup()

    def fileno(self) -> int:
        return self._socket.fileno()

    def datagrams(self) -> list[str]:
        """The messages received since the last call."""
        out = []
        while True:
            try:
                out.append(self._socket.recv(65536).decode())
            except BlockingIOError:
                return out

    def lines(self) -> list[str]:
        return "".join(self.datagrams()).splitlines()

    def fill(self) -> int:
        """Datagrams that the queue takes before it takes no more. Each from a socket of its own, whose send buffer would
        else be the first to be full."""
        for count in range(100_000):
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.setblocking(False)
                try:
                    sender.sendto(b"x", self.path)
                except BlockingIOError:
                    return count
        raise AssertionError("the queue has no end")


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def wall(self) -> float:
        return STARTED + self.now - 1000.0


def run_at(path: str, clock: Clock, environ: dict[str, str] | None = None, **info: Any) -> gpumeter.Run:
    return gpumeter.Run("resnet50", path=path, environ=environ or {}, clock=clock, wall=clock.wall, **info)


def run_program(program: str, path: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """As a job that treats warnings as errors, with GPUMETER_SOCKET set to `path`."""
    return subprocess.run([sys.executable, "-B", "-W", "error", "-c", program], check=check, capture_output=True, text=True,
                          env={"PYTHONPATH": str(CLIENT), "GPUMETER_SOCKET": path}, timeout=60)
