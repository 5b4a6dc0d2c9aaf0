"""A daemon beside gpumeter-servers, which reads the page of a real model server on the processor, and that page as the server writes it.

The processor is no GPU, so the server's process is put on a simulated one."""
from __future__ import annotations

import json
import os
import sys
import tempfile
import urllib.request
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "e2e"))
from harness import Daemon, Page, Program, text_page, wait_until  # noqa: E402


@contextmanager
def watched(pid: int, port: int, *processes: str):
    """Yields a daemon that shows the server, which is found by its port and by one of its names. The process `pid` is on the GPU."""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "gpumeter.yaml")
        config.write_text(json.dumps({
            "sampling": {"normal": "1s"}, "servers": {"enabled": True, "ports": [str(port)], "processes": [*processes]},
            "pages": {"folders": [folder], "trusted": [str(os.geteuid())]},
            "collectors": {"nvidia": {"enabled": False}, "amd": {"enabled": False},
                           "simulated": {"enabled": True, "devices": 1, "processes": [f"0={pid},busy=0.5"]}}}))
        with Daemon(f"--config.file={config}") as daemon, Program("gpumeter-servers", daemon, config, pages=Path(folder)):
            yield daemon


def own_page(port: int) -> Page:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        return text_page(answer.read().decode())


def both_pages(daemon: Daemon, port: int, shows: "dict[tuple, float]") -> tuple[Page, Page]:
    """The daemon's page when it has these series of the server, and then the server's own."""
    def is_shown() -> "Page | None":
        page = daemon.page()
        return page if all(page.one(name, **dict(labels), port=str(port)) == value for (name, labels), value in shows.items()) else None
    return wait_until(is_shown, f"the page has {shows}", 60), own_page(port)


def histogram(page: Page, name: str, **labels: str) -> "tuple[dict[float, float], float | None, float | None]":
    """Counts by bucket, the sum and the count of a histogram of one series."""
    buckets = {float(dict(labels)["le"]): value for (_, labels), value in page.of(f"{name}_bucket", **labels).items()}
    return buckets, page.one(f"{name}_sum", **labels), page.one(f"{name}_count", **labels)
