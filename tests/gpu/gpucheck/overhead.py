"""The cost of the daemon: its CPU time and memory, and the slowdown of a running loop. Figures, no verdicts."""
from __future__ import annotations

import time
from statistics import median

from .daemon import Daemon
from .load import Load
from .page import fetch


def weight(daemon: Daemon, seconds: float) -> dict[str, float]:
    """While it is scraped once in 5 s."""
    spent, started = daemon.cpu_seconds(), time.monotonic()
    while time.monotonic() - started < seconds:
        fetch(f"{daemon.url}/metrics")
        time.sleep(min(5, seconds))
    elapsed = time.monotonic() - started
    return {"cpu_share_of_a_core": (daemon.cpu_seconds() - spent) / elapsed, "rss_bytes": daemon.rss_bytes(), "seconds": elapsed}


def slowdown(binary: str, uuid: str, pairs: int, seconds: float) -> dict[str, object]:
    """The loop without and with the daemon, in turn, so that a drift of the card's clock meets both alike."""
    rates: dict[str, list[float]] = {"without": [], "with": []}
    for turn in range(pairs * 2):
        which = "without" if turn % 4 in (0, 3) else "with"  # ABBA: neither is always first
        daemon = Daemon(binary) if which == "with" else None
        try:
            with Load(uuid, seconds) as load:
                rates[which].append(load.result()["flops"])
        finally:
            if daemon:
                daemon.stop()
    change = median(rates["with"]) / median(rates["without"]) - 1
    spread = (max(rates["without"]) - min(rates["without"])) / median(rates["without"])
    return {"change": change, "spread_without": spread, "flops_without": rates["without"], "flops_with": rates["with"]}
