#!/usr/bin/env python3
"""How many messages of a sender that never waits find room, by the rate at which it sends them evenly: the daemon, and a bare loop of
recvmmsg() on a socket with the same queue. Each rate is offered to both in turns. Needs root, for the queues' lengths.

usage: jobs_rates.py BUILD_FOLDER"""
from __future__ import annotations

import os
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from bench import FULL, table
from jobs_fairness import QUEUES, as_user, bare_loop, daemon_with_queue, result, tool

sys.path[:0] = [str(Path(__file__).resolve().parent.parent / "e2e")]
from jobs import is_root, shown  # noqa: E402
from jobs_cost import GENEROUS, thread_seconds  # noqa: E402

SECONDS = 3 if FULL else 1
ROUNDS = 5 if FULL else 3
RATES = [100_000, 200_000, 300_000, 400_000, 500_000, 600_000]


@dataclass
class Offer:
    """One rate, offered for SECONDS."""
    sent: int
    lost: int
    cpu: float = 0  # of a core, all threads of the daemon

    @property
    def rate(self) -> float:
        return (self.sent + self.lost) / SECONDS


def offer(load: str, path: str, rate: int) -> Offer:
    return Offer(*result([as_user(4001, [load, "paced", path, str(SECONDS), str(rate)])]))


def to_daemon(load: str, length: int) -> list[Offer]:
    """What was queued is counted, all of it."""
    with daemon_with_queue(length, GENEROUS) as (folder, daemon):
        offers, total = [], 0
        for rate in RATES:
            before = sum(thread_seconds(daemon.process.pid).values())
            offers.append(offer(load, folder.datagram, rate))
            total += offers[-1].sent
            shown(daemon, {'ml_steps_total{run="flood"}': total})
            offers[-1].cpu = (sum(thread_seconds(daemon.process.pid).values()) - before) / SECONDS
        return offers


def to_bare_loop(load: str, length: int) -> list[Offer]:
    with bare_loop(load, length) as path:
        return [offer(load, path, rate) for rate in RATES]


def shown_as(offers: list[Offer]) -> str:
    """The medians of all rounds of one rate."""
    offered, taken = (statistics.median(values) for values in zip(*((each.rate, each.sent / SECONDS) for each in offers)))
    lost = statistics.median(each.lost / max(1, each.sent + each.lost) for each in offers)
    cpu = statistics.median(each.cpu for each in offers)
    return f"{taken:.0f} of {offered:.0f}/s taken, {lost:.2%} lost" + (f", CPU {cpu:.0%} of a core" if cpu else "")


def highest_without_loss(rounds: list[list[Offer]]) -> str:
    """The highest rate that, as all lower ones, lost nothing in most rounds."""
    highest = 0.0
    for offers in zip(*rounds):
        if statistics.median(each.lost for each in offers) > 0:
            break
        highest = statistics.median(each.rate for each in offers)
    return f"{highest:.0f}/s"


def rows(load: str, length: int) -> list[tuple[str, str, str]]:
    daemon, bare = [], []
    for _ in range(ROUNDS):
        daemon.append(to_daemon(load, length))
        bare.append(to_bare_loop(load, length))
    found = [(f"queue of {length}, {rate} a second", shown_as([offers[i] for offers in daemon]),
              "bare loop: " + shown_as([offers[i] for offers in bare])) for i, rate in enumerate(RATES)]
    return [*found, (f"queue of {length}, highest rate without a loss", highest_without_loss(daemon),
                     "bare loop: " + highest_without_loss(bare))]


if __name__ == "__main__":
    if not is_root():
        sys.exit("skipped: needs root")
    with tool(sys.argv[1]) as program:
        for length in QUEUES:
            table(f"messages at a steady rate, queue of {length}", rows(program, length))
