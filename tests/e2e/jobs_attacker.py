"""Sends hostile messages to a datagram socket. A separate program, so that another user can run it.

usage: jobs_attacker.py SOCKET runs|garbage
"""
from __future__ import annotations

import os
import socket
import sys

RUNS = 1_000_000
LINES = 500  # of a datagram; 512 are looked at
ROUNDS = 2000
LONG = 200  # of each kind of datagram that is long
NAN = b"ml.loss:nan|g|#run:a\nml.loss:1e999|g\nml.steps:-1|c\nml.steps:1e19|c"  # four values that are none
# What is the daemon's to say, and bytes that would end a label, a line or a terminal's patience.
FORGED = b"ml.steps:1|c|#user:root,uid:0,pid:1,gpu:0,uuid:x,instance:y,job:z,le:1,run:forged\n"
ESCAPES = b'ml.steps:1|c|#run:\x00\x1b[2J"} 1\r\n'


def runs(out: socket.socket) -> None:
    for first in range(0, RUNS, LINES):
        out.send("\n".join(f"ml.steps:1|c|#run:r{i}" for i in range(first, first + LINES)).encode())


def garbage(out: socket.socket) -> None:
    for i in range(ROUNDS):
        out.send(os.urandom(1 + i % 4096))
        out.send(NAN)
        out.send(FORGED + ESCAPES)
    for _ in range(LONG):
        out.send(b"ml.steps:1|c|#run:" + b"x" * 65_000)
        out.send(b"\xff" * 65_536)
        out.send(b"a:1|c\n" * 10_000)
        out.send(b"x" * 70_000)


if __name__ == "__main__":
    path, what = sys.argv[1:]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as to_daemon:
        to_daemon.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 18)
        to_daemon.connect(path)
        {"runs": runs, "garbage": garbage}[what](to_daemon)
    print("sent")
