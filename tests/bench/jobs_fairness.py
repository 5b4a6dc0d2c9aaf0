#!/usr/bin/env python3
"""The cost of flooders of the jobs' datagram socket to other users, and how many messages of a sender that never waits the daemon takes, next
to a bare loop of recvmmsg() on a socket with the same queue. Needs root: each sender is another user, and a queue's length is that of a
network namespace.

usage: jobs_fairness.py BUILD_FOLDER"""
from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Iterator

from bench import Daemon, table
from jobs_cost import GENEROUS, bound_with_queue, thread_seconds

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests/e2e")]
import jobs_sender  # noqa: E402
from jobs import Folder, is_root  # noqa: E402

SECONDS = 10 if os.environ.get("BENCH_FULL") else 3
VICTIMS = range(3001, 3004)
OWNER, FIRST, UIDS = 4001, 300_000, 3000
QUEUES = (10, 512, 65_536)
# Name, and for each flooder: how it sends, and over how many sockets.
ATTACKS = [("one flooder", [("default", 1)]), ("one flooder, 16 sockets with the largest buffers", [("flood", 16)]),
           ("five flooders", [("default", 1)] * 5), ("five flooders, 4 sockets each with the largest buffers", [("flood", 4)] * 5)]


def as_user(uid: int, command: list[str], **named: object) -> subprocess.Popen:
    return subprocess.Popen(["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", *command], stdout=subprocess.PIPE, text=True,
                            **named)


def result(processes: list[subprocess.Popen]) -> tuple[int, int]:
    """Messages that found room, and that did not."""
    found = [list(map(float, process.communicate()[0].split())) for process in processes]
    return int(sum(each[0] for each in found)), int(sum(each[1] for each in found))


@contextlib.contextmanager
def tool(build: str) -> Iterator[str]:
    """Where every user may run it."""
    with tempfile.TemporaryDirectory(prefix="gpumeter-bench-") as folder:
        os.chmod(folder, 0o755)
        program = Path(folder, "load")
        program.write_bytes(Path(build, "tests/bench/bench_datagram_load").read_bytes())
        program.chmod(0o755)
        yield str(program)


def beside(load: str, folder: Folder, pid: int, attack: list[subprocess.Popen]) -> str:
    before = thread_seconds(pid)
    victims = [as_user(uid, [load, "steady", folder.datagram, str(SECONDS), "mine"]) for uid in VICTIMS]
    sent, lost = result(victims)
    used = thread_seconds(pid)
    attackers_sent, attackers_lost = result(attack)
    cpu = ", ".join(f"{name} {(used[name] - before.get(name, 0)) / SECONDS:.0%}" for name in ("jobs-receive", "jobs") if name in used)
    return (f"others lost {lost} of {sent + lost} ({lost / (sent + lost):.2%}); {attackers_sent / SECONDS:.0f}/s of the flood taken "
            f"({attackers_lost / max(1, attackers_sent + attackers_lost):.0%} found no room); CPU of a core: {cpu}")


@contextlib.contextmanager
def daemon_with_queue(length: int, config: str = "", wrap: list[str] | None = None) -> Iterator[tuple[Folder, Daemon]]:
    with Folder(config) as folder:
        made = bound_with_queue(folder.datagram, length)
        os.chmod(folder.datagram, 0o666)
        if wrap:  # the daemon makes its own socket, whose queue is 65 536
            made.close()
            os.unlink(folder.datagram)
        with (folder.daemon(wrap=wrap) if wrap else folder.passed([made])) as daemon:
            yield folder, daemon


@contextlib.contextmanager
def bare_loop(load: str, length: int) -> Iterator[str]:
    """The path of a socket that a loop of recvmmsg() empties, with the options of the daemon's."""
    with Folder() as folder:
        made = bound_with_queue(folder.datagram, length)
        os.chmod(folder.datagram, 0o666)
        for option in (socket.SO_PASSCRED, 35):  # 35: SO_TIMESTAMPNS
            made.setsockopt(socket.SOL_SOCKET, option, 1)
        loop = subprocess.Popen(["sh", "-c", f'exec "$0" receive 3<&{made.fileno()}', load], pass_fds=[made.fileno()], stdout=subprocess.PIPE,
                                text=True)
        try:
            yield folder.datagram
        finally:
            loop.terminate()
            loop.communicate()


def floods(load: str, length: int) -> list[tuple[str, str, str]]:
    rows = []
    for name, flooders in ATTACKS:
        with daemon_with_queue(length) as (folder, daemon):
            attack = [as_user(4001 + i, [load, how, folder.datagram, str(SECONDS + 1), str(sockets)])
                      for i, (how, sockets) in enumerate(flooders)]
            rows.append((f"queue of {length}, {name}", beside(load, folder, daemon.process.pid, attack), "<= 1 %"))
    return rows


def subordinate(load: str) -> list[tuple[str, str, str]]:
    """A process for each uid of one user's range sends five messages."""
    with tempfile.NamedTemporaryFile("w") as subuid:
        subuid.write(f"{OWNER}:{FIRST}:65536\n")
        subuid.flush()
        wrap = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/subuid && exec "$@"', subuid.name]
        with daemon_with_queue(QUEUES[-1], wrap=wrap) as (folder, daemon):
            attack = subprocess.Popen(["/usr/bin/python3", "-I", jobs_sender.__file__, folder.datagram, "each", str(FIRST), str(UIDS)],
                                      stdout=subprocess.PIPE, text=True)
            figure = beside(load, folder, daemon.process.pid, [attack])
            return [(f"queue of {QUEUES[-1]}, {UIDS} uids of one subordinate range", figure, "<= 1 %")]


def rate(sent: int, lost: int) -> str:
    return f"{sent / SECONDS:.0f}/s taken, {lost / (sent + lost):.1%} of {(sent + lost) / SECONDS:.0f}/s lost"


def takes(load: str, length: int) -> list[tuple[str, str, str]]:
    """One sender that never waits, with jobs.limits that reject nothing, and the bare loop."""
    with daemon_with_queue(length, GENEROUS) as (folder, _):
        daemon = result([as_user(4001, [load, "default", folder.datagram, str(SECONDS), "1"])])
    with bare_loop(load, length) as path:
        loop = result([as_user(4001, [load, "default", path, str(SECONDS), "1"])])
    return [(f"queue of {length}, a sender that never waits", rate(*daemon), "none below 500 000/s"),
            ("the same, a bare loop of recvmmsg()", rate(*loop), "")]


if __name__ == "__main__":
    if not is_root():
        sys.exit("skipped: needs root")
    with tool(sys.argv[1]) as program:
        table("flooders of the jobs' socket", [row for length in QUEUES for row in floods(program, length)] + subordinate(program))
        table("messages of one line", [row for length in QUEUES for row in takes(program, length)])
