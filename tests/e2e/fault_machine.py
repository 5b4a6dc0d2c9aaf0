"""A machine of four AMD cards whose files can be made to fail, its daemon, and a scraper's view of both."""
from __future__ import annotations

import os
import socket
import sys
import tempfile
import time
from pathlib import Path

from faulty import Faulty
from harness import OF_THE_HOST, ROOT, Daemon, Page

sys.path.insert(0, str(ROOT / "tests/fixtures"))
from card_tree import CARDS, facts_of, lay_facts  # noqa: E402

CARD = CARDS / "radeon_rx.card"  # busy at 97 %, its memory at 44 %, 231 W
GPUS = ("0", "1", "2", "3")
TARGET, OTHERS = "1", ("0", "2", "3")
# What the card's driver is asked in every pass, and what tells which card it is and where it stands.
IDENTITY = r"unique_id|serial_number|product_name|vbios_version|fw_version|numa_node"
BUS = r"uevent|class|vendor|device|revision"
# counter: the gauge that it integrates. On every page their growth since the first one is the gauge's value times the
# observed time, exactly: values and time of a pass are committed together.
INTEGRATED = {"gpu_busy_seconds_total": "gpu_utilization_ratio", "gpu_energy_joules_total": "gpu_power_watts",
              "gpu_memory_controller_busy_seconds_total": "gpu_memory_controller_utilization_ratio"}


def address_of(gpu: str) -> str:
    return f"0000:2{gpu}:00.0"


def files_of(gpu: str, files: str) -> str:
    return rf"^/sys/devices/.*/{address_of(gpu)}/({files})"


def data_of(gpu: str) -> str:
    return files_of(gpu, rf"(?!power/|drm/|({IDENTITY}|{BUS})$)")


def lay_cards(root: Path) -> None:
    for gpu in GPUS:
        facts = dict(facts_of(CARD))
        facts.pop("behind", None)
        facts |= {"address": address_of(gpu), "unique_id": f"00c0ffee00c0ff0{gpu}", "power/control": "on"}
        folder = lay_facts(root / "sys", list(facts.items()))
        (folder / "drm/card0").rename(folder / f"drm/card{gpu}")
        (folder / "drm/renderD128").rename(folder / f"drm/renderD{128 + int(gpu)}")


class Machine:
    """A context manager. `faults` fails and heals; state, log and MLPerf's file are below it too."""

    def __init__(self):
        self.faults = Faulty()
        lay_cards(self.faults.backing)
        for name in ("state", "logs", "jobs"):
            (self.faults.backing / name).mkdir()
        self.mllog = self.faults.backing / "jobs/result.txt"
        self.mllog.touch()
        self.log = self.faults.backing / "logs/log"
        self.log.touch()

    def __enter__(self) -> "Machine":
        self.faults.__enter__()
        self.run_folder = tempfile.TemporaryDirectory(prefix="gpumeter-run-")
        run = Path(self.run_folder.name)
        self.datagram = str(run / "jobs.sock")
        self.config = run / "gpumeter.yaml"
        self.config.write_text(f"jobs:\n  socket: {self.datagram}\n  stream_socket: {run}/stream.sock\n"
                               f"  mllog: ['bert={self.faults.root}/jobs/result.txt']\n"
                               f"collectors:\n  amd:\n    ids_file: {CARDS}/amdgpu.ids\n  nvidia:\n    enabled: false\n")
        return self

    def __exit__(self, *_) -> None:
        self.faults.__exit__()
        self.run_folder.cleanup()

    def daemon(self) -> Daemon:
        """Not waited for. Its log is read from behind the mirror, since it may be the log that hangs."""
        root = self.faults.root
        daemon = Daemon(f"--config.file={self.config}", f"--path.sysfs={root}/sys", f"--path.procfs={self.run_folder.name}",
                        state=str(root / "state"), log=root / "logs/log", wait=False)
        daemon.log_path = self.log
        return daemon

    def tell(self, line: str) -> None:
        """A job's message, sent as one datagram."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
            out.sendto(line.encode(), self.datagram)

    def logs_mllog(self, key: str, value: "float | str") -> None:
        with self.mllog.open("a") as file:
            file.write(f':::MLLOG {{"key": "{key}", "value": {value}, "time_ms": {time.time() * 1e3:.0f}, '
                       '"metadata": {}}\n')


def uuid_of(gpu: str) -> str:
    return f"GPU-00c0ffee00c0ff0{gpu}"


def series_of(page: Page, gpu: str) -> set:
    """The series of the device's readings. Its health is a judgement, which a lost device has too; its place is read every 10 s."""
    return {where for where in page if where[0].startswith("gpu_") and not where[0].startswith(("gpu_health", *OF_THE_HOST))
            and ("uuid", uuid_of(gpu)) in where[1]}


def without_index(series: set) -> set:
    return {(name, tuple(label for label in labels if label[0] != "gpu")) for name, labels in series}


def value_of(page: Page, gpu: str, name: str, **labels: str) -> float | None:
    return page.one(name, uuid=uuid_of(gpu), **labels)


def observed(page: Page, gpu: str) -> float | None:
    return value_of(page, gpu, "gpu_observed_seconds_total", tier="fast")


class Watch:
    """Scrapes again and again, and keeps what stands out."""

    def __init__(self, daemon: Daemon):
        self.daemon = daemon
        self.slowest = 0.0
        self.gap = 0.0  # the longest time without a pass of another card
        self.moved: dict[str, tuple[float | None, float]] = {}
        self.first: dict[str, dict] = {}
        self.series: list[int] = []  # of the card that fails, page by page
        self.up: list[float | None] = []
        self.frozen: list[str] = []

    def look(self) -> Page:
        asked = time.monotonic()
        page = self.daemon.page()
        now = time.monotonic()
        self.slowest = max(self.slowest, now - asked)
        for gpu in OTHERS:
            total, since = observed(page, gpu), self.moved.get(gpu, (None, now))[1]
            if total != self.moved.get(gpu, (None,))[0]:
                self.moved[gpu] = (total, now)
            self.gap = max(self.gap, now - since)
        self.series.append(len(series_of(page, TARGET)))
        self.up.append(value_of(page, TARGET, "gpu_up"))
        for gpu in GPUS:
            self._hold_against_observed_time(page, gpu)
        return page

    def _hold_against_observed_time(self, page: Page, gpu: str) -> None:
        """Each counter on the page has grown with the observed time, in proportion to its gauge."""
        time_seen = observed(page, gpu)
        if time_seen is None:
            return
        for counter, gauge in INTEGRATED.items():
            total, value = value_of(page, gpu, counter), value_of(page, gpu, gauge)
            first = self.first.setdefault(gpu, {})
            if total is None or (counter not in first and value is None):
                continue
            if counter not in first:
                first[counter] = (total, time_seen, value)
            then, time_then, value = first[counter]
            if abs((total - then) - value * (time_seen - time_then)) > 1e-6 * (1 + total):
                self.frozen.append(f"gpu {gpu} {counter}: +{total - then:.3f} in {time_seen - time_then:.3f} s at {value}")

    def until(self, true, seconds: float, every: float = 0.2) -> float | None:
        """Seconds until `true(page)`; None where it never comes."""
        start = time.monotonic()
        while time.monotonic() < start + seconds:
            if true(self.look()):
                return time.monotonic() - start
            time.sleep(every)
        return None

    def through(self, seconds: float) -> None:
        self.until(lambda page: False, seconds, every=0.5)
