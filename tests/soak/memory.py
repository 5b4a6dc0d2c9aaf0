"""Memory, threads and descriptors of a process over time, and the judgement whether its memory grows."""
from __future__ import annotations

import csv
import statistics
import threading
import time
from dataclasses import dataclass, fields
from pathlib import Path


@dataclass
class Sample:
    seconds: float  # since the first sample
    rss_kib: int
    pss_kib: int
    anonymous_kib: int
    threads: int
    descriptors: int
    cpu_seconds: float


def numbers(path: str) -> dict[str, int]:
    """The numeric lines of a file such as /proc/PID/status."""
    pairs = (line.split() for line in Path(path).read_text().splitlines())
    return {words[0].rstrip(":"): int(words[1]) for words in pairs if len(words) > 1 and words[1].isdigit()}


def sample(pid: int, since: float) -> Sample:
    sums, status = numbers(f"/proc/{pid}/smaps_rollup"), numbers(f"/proc/{pid}/status")
    ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return Sample(round(time.monotonic() - since, 1), sums["Rss"], sums["Pss"], sums["Anonymous"], status["Threads"],
                  len(list(Path(f"/proc/{pid}/fd").iterdir())), sum(map(int, ticks)) / 100)


class Curve(threading.Thread):
    """Writes a row of the CSV file each `every` seconds until stop()."""

    def __init__(self, pid: int, path: Path, every: float) -> None:
        super().__init__(daemon=True)
        self._pid, self._every, self._end = pid, every, threading.Event()
        self.path, self.samples = path, []

    def run(self) -> None:
        since = time.monotonic()
        with self.path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(field.name for field in fields(Sample))
            while not self._end.wait(self._every):
                self.samples.append(sample(self._pid, since))
                writer.writerow(vars(self.samples[-1]).values())
                file.flush()

    def stop(self) -> None:
        self._end.set()
        self.join()


def slope(samples: list[Sample]) -> float:
    """KiB of anonymous memory a minute: the median of the slopes between all pairs of samples (Theil and Sen), which neither a page
    that is being rendered nor a burst of runs moves."""
    pairs = [(b.anonymous_kib - a.anonymous_kib) / (b.seconds - a.seconds) * 60
             for i, a in enumerate(samples) for b in samples[i + 1:] if b.seconds > a.seconds]
    return statistics.median(pairs) if pairs else 0.0


def lines(samples: list[Sample], rows: int = 12) -> list[str]:
    """The curve as text: medians of equal parts of the time."""
    size = max(1, -(-len(samples) // rows))
    text = ["  minute   RSS   PSS  anonymous KiB  threads  descriptors  CPU %"]
    for at in range(0, len(samples), size):
        part = samples[at:at + size]
        middle = {name: statistics.median(getattr(s, name) for s in part)
                  for name in ("seconds", "rss_kib", "pss_kib", "anonymous_kib", "threads", "descriptors")}
        span = part[-1].seconds - part[0].seconds
        busy = 100 * (part[-1].cpu_seconds - part[0].cpu_seconds) / span if span else 0.0
        text.append(f"  {middle['seconds'] / 60:6.1f} {middle['rss_kib']:5.0f} {middle['pss_kib']:5.0f} {middle['anonymous_kib']:14.0f}"
                    f" {middle['threads']:8.0f} {middle['descriptors']:12.0f} {busy:6.1f}")
    return text
