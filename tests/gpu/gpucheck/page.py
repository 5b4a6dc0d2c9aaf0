"""A page in Prometheus' text format, and its source."""
from __future__ import annotations

import re
import urllib.request
from typing import NamedTuple

LINE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class Sample(NamedTuple):
    name: str
    labels: dict[str, str]
    value: float


class Page:
    def __init__(self, text: str) -> None:
        self.samples: dict[str, list[Sample]] = {}
        for line in text.splitlines():
            if match := LINE.match(line):
                sample = Sample(match[1], dict(LABEL.findall(match[2] or "")), float(match[3]))
                self.samples.setdefault(sample.name, []).append(sample)

    def of(self, name: str, uuid: str, **labels: str) -> list[Sample]:
        wanted = {"uuid": uuid, **labels}.items()
        return [sample for sample in self.samples.get(name, []) if wanted <= sample.labels.items()]

    def total(self, name: str, uuid: str, **labels: str) -> float | None:
        """Of what it has with these labels; None: it has nothing, which is not 0."""
        found = self.of(name, uuid, **labels)
        return sum(sample.value for sample in found) if found else None

    def label(self, name: str, uuid: str, label: str) -> str | None:
        found = self.of(name, uuid)
        return found[0].labels.get(label) if found else None


def fetch(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read().decode()


def delta(before: Page, after: Page, name: str, uuid: str, **labels: str) -> float | None:
    first, last = before.total(name, uuid, **labels), after.total(name, uuid, **labels)
    return last - first if first is not None and last is not None else None
