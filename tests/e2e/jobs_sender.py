"""Sends job messages without ever waiting, as a program of another user. Prints how many messages found room, and how many did not.

usage: jobs_sender.py SOCKET flood SECONDS SOCKETS|steady SECONDS RUN|each FIRST COUNT
"""
from __future__ import annotations

import os
import socket
import sys
import time

STEADY_PAUSE = 0.01
OF_EACH = 5  # messages of each uid


def connected(path: str, buffer: int = 0) -> socket.socket:
    out = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    if buffer:
        out.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffer)
    out.setblocking(False)
    out.connect(path)
    return out


def send(out: socket.socket, line: bytes) -> bool:
    try:
        out.send(line)
        return True
    except BlockingIOError:
        return False


def flood(path: str, seconds: float, sockets: int) -> tuple[int, int]:
    outs = [connected(path, 1 << 18) for _ in range(sockets)]
    sent, tried, end = 0, 0, time.monotonic() + seconds
    while time.monotonic() < end:
        for out in outs * 10:
            sent += send(out, b"ml.steps:1|c|#run:flood")
            tried += 1
    return sent, tried - sent


def steady(path: str, seconds: float, run: str) -> tuple[int, int]:
    out, line = connected(path), f"ml.steps:1|c|#run:{run}".encode()
    sent, tried, end = 0, 0, time.monotonic() + seconds
    while time.monotonic() < end:
        sent += send(out, line)
        tried += 1
        time.sleep(STEADY_PAUSE)
    return sent, tried - sent


def each(path: str, first: int, count: int) -> tuple[int, int]:
    """A process for each uid, as in the user namespaces of as many containers."""
    sent = 0
    for uid in range(first, first + count):
        child = os.fork()
        if child == 0:
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            out = connected(path)
            os._exit(sum(send(out, f"ml.steps:1|c|#run:r{uid}".encode()) for _ in range(OF_EACH)))
        sent += os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return sent, OF_EACH * count - sent


if __name__ == "__main__":
    path, what, one, two = sys.argv[1:]
    found = {"flood": lambda: flood(path, float(one), int(two)), "steady": lambda: steady(path, float(one), two),
             "each": lambda: each(path, int(one), int(two))}[what]()
    print(*found)
