"""Counters of successive pages: none may decrease."""
from __future__ import annotations

import time
from collections.abc import Iterator

COUNTED = {"counter": ("_total",), "histogram": ("_bucket", "_count")}
FORGET_SECONDS = 900  # after its last page; runs leave for good, and a soak sees thousands


def counters(text: str) -> Iterator[tuple[str, float]]:
    """The series of a page's counters and histograms, as spelled. Both formats put TYPE in front of the samples."""
    kinds: dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, family, kind = line.split(" ")
            kinds[family.removesuffix("_total")] = kind
        elif not line.startswith("#"):
            series, _, value = line.rpartition(" ")
            name = series.partition("{")[0]
            family, _, part = name.rpartition("_")
            if "_" + part in COUNTED.get(kinds.get(family, ""), ()):
                yield series, float(value)


class Monotonic:
    """The counters as one scraper has seen them. `findings`: decreases outside a permitted restart of the simulated collector."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[float, float]] = {}
        self.findings: list[str] = []
        self.compared = 0

    def permit_resets(self, *prefixes: str) -> None:
        """Series with these prefixes start again, because the configuration of their collector was changed."""
        for series in [s for s in self._seen if s.startswith(prefixes)]:
            del self._seen[series]

    def check(self, text: str) -> None:
        now = time.monotonic()
        for series, value in counters(text):
            last, _ = self._seen.get(series, (value, now))
            self.compared += 1
            if value < last:
                self.findings.append(f"{series} decreased from {last} to {value}")
            self._seen[series] = (value, now)
        if len(self._seen) > 20_000:
            self._seen = {s: entry for s, entry in list(self._seen.items()) if now - entry[1] < FORGET_SECONDS}
