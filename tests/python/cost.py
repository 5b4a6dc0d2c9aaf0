#!/usr/bin/env python3
"""The cost of the Python client's calls for the job: with a daemon that reads, without one, and with a frozen one."""
from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Callable, Iterator

from receiver import Receiver, gpumeter

DAEMONS = ("up", "stopped", "frozen")
PAUSES = {"eval": 0.001}  # it sends each time, and would meet a full queue in a burst


@dataclass(frozen=True)
class Cost:
    call: str
    daemon: str
    calls: int
    median: float  # seconds
    p99: float
    longest: float

    def __str__(self) -> str:
        return (f"{self.call:<9} daemon {self.daemon:<8} median {self.median * 1e6:6.1f} us  p99 {self.p99 * 1e6:6.1f} us  "
                f"longest {self.longest * 1e6:8.1f} us  of {self.calls}")


def measure(daemon: str, calls: int = 2_000) -> list[Cost]:
    """`daemon` is one of DAEMONS: a process reads, there is no socket, or the process is stopped and its queue full."""
    with Receiver() as receiver, _reading(receiver) as reader:
        if daemon == "frozen":
            reader.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, reader.pid, os.WSTOPPED)
            receiver.fill()
        path = "/nonexistent/jobs.sock" if daemon == "stopped" else receiver.path
        with gpumeter.Run("cost", path=path, environ={}) as run:
            costs = [_cost(name, daemon, call, calls) for name, call in _calls(run).items()]
        return costs


@contextlib.contextmanager
def _reading(receiver: Receiver) -> Iterator[subprocess.Popen[bytes]]:
    """A process that reads: what it costs is not the job's."""
    number = receiver.fileno()
    program = f"import socket\ns = socket.socket(fileno={number})\ns.setblocking(True)\nwhile True: s.recv(65536)"
    with subprocess.Popen([sys.executable, "-c", program], pass_fds=[number]) as reader:
        try:
            yield reader
        finally:
            reader.kill()


def _calls(run: gpumeter.Run) -> dict[str, Callable[[], None]]:
    def phase() -> None:
        with run.phase("data_loading"):
            pass
    return {"step": lambda: run.step(samples=256, tokens=4096, flops=1e12, loss=2.5), "phase": phase,
            "inference": lambda: run.inference(0.1, ttft=0.01, input_tokens=100, output_tokens=10),
            "eval": lambda: run.eval("top1", 0.5)}


def _cost(name: str, daemon: str, call: Callable[[], None], calls: int) -> Cost:
    taken = [_timed(call, PAUSES.get(name, 0)) for _ in range(calls)]
    taken.sort()
    return Cost(name, daemon, calls, taken[calls // 2], taken[calls * 99 // 100], taken[-1])


def _timed(call: Callable[[], None], pause: float) -> float:
    time.sleep(pause)
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


if __name__ == "__main__":
    for each in DAEMONS:
        for found in measure(each):
            print(found)
