"""Sends hostile messages to a datagram socket. A separate program, so that another user can run it.

usage: jobs_attacker.py SOCKET runs|garbage|uids|victim
"""
from __future__ import annotations

import os
import socket
import sys
import time

RUNS = 1_000_000
LINES = 500  # of a datagram; 512 are looked at
ROUNDS = 2000
VICTIM = 790  # messages of the job that has no part in it
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


def uids(out: socket.socket) -> None:
    """Without end."""
    uid = 1_000_000
    while True:
        uid = uid + 1 if uid < 2_000_000 else 1_000_000
        os.setresuid(uid, uid, 0)
        try:
            out.send(b"ml.steps:1|c|#run:uids", socket.MSG_DONTWAIT)
        except BlockingIOError:
            time.sleep(0.001)
        os.setresuid(0, 0, 0)


def victim(out: socket.socket) -> None:
    for _ in range(VICTIM):
        out.send(b"ml.steps:1|c|#run:victim")
        time.sleep(0.002)


if __name__ == "__main__":
    path, what = sys.argv[1:]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as to_daemon:
        to_daemon.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 18)
        to_daemon.connect(path)
        {"runs": runs, "garbage": garbage, "uids": uids, "victim": victim}[what](to_daemon)
    print("sent")
