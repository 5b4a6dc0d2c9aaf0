"""Holds the lines of `nvidia-smi -q` against a page: tests/fixtures/nvidia_smi.tsv says where the page has each."""
import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from nvidia_smi_tree import Node

TABLE = Path(__file__).resolve().parents[2] / "fixtures/nvidia_smi.tsv"
SCALES = {"%": 1e-2, "MiB": 2**20, "MHz": 1e6, "us": 1e-6}  # to the units of series
WORDS = {"Yes": 1.0, "No": 0.0, "Active": 1.0, "Not Active": 0.0}


@dataclass
class Place:
    how: str
    family: str
    labels: dict[str, str]
    label: str  # the line is its value
    text: str


def table() -> dict[str, Place]:
    rows = [line.split("\t") for line in TABLE.read_text().splitlines() if not line.startswith("#")]
    found = {}
    for path, how, text in rows:
        parts = re.fullmatch(r"(\w+)(?:\{(.*)\})?(?: (\w+))?", text) if how != "out" else None
        family, labels, label = parts.groups() if parts else ("", "", "")
        found[path] = Place(how, family, dict(one.split("=") for one in (labels or "").split(",") if one), label or "", text)
    assert len(found) == len(rows), "a line stands twice in the table"
    return found


def number(text: str) -> float:
    """31 %, 98.14 W, 16x, P2, 3072 bank(s), Yes"""
    if text in WORDS:
        return WORDS[text]
    found = re.fullmatch(r"P?(-?[\d.]+)x? ?(\S*)", text)
    assert found, text
    return float(found[1]) * SCALES.get(found[2], 1)


def written(text: str) -> str:
    """Without case and signs; an address and ids of PCI in the order of lspci."""
    if re.fullmatch(r"0000[0-9A-F]{4}(:[0-9A-F]{2}){2}\.0", text):
        text = text[4:]
    elif re.fullmatch(r"0x[0-9A-F]{8}", text):
        text = text[6:] + text[2:6]
    return re.sub(r"[^a-z0-9.]", "", text.lower())


class Lines:
    """Compares all filled lines of one GPU. `wrong` says where the page differs, `counts` how many lines were held how."""

    def __init__(self, page, address: str, root: Node, gpu: Node):
        self.page, self.table = page, table()
        self.labels = {"gpu": next(dict(key[1])["gpu"] for key in page.of("gpu_info", pci_address=address))}
        self.wrong: list[str] = []
        self.counts: dict[str, int] = defaultdict(int)
        self.sums: dict[str, float] = defaultdict(float)
        for child in root.children:
            if child.key != "GPU" or child is gpu:
                self.line(child.key, child, self.labels)
        self.walk(gpu, "", self.labels)
        for path, place in self.table.items():
            if place.how == "sum" and place.text in self.sums:
                found = sum(self.page.of(place.family, **self.labels, **place.labels).values())
                self.expect(path, self.sums.pop(place.text), found)

    def walk(self, node: Node, path: str, labels: dict[str, str]) -> None:
        for child in node.children:
            where = f"{path}/{child.key}".strip("/")
            of = labels | self.partition(child)
            self.line(where, child, of)
            self.walk(child, where, of)

    def partition(self, node: Node) -> dict[str, str]:
        if node.key != "MIG Device":
            return {}
        found = self.page.of("gpu_partition_info", **self.labels, gpu_instance=node.at("GPU Instance ID").value)
        return {"partition": dict(next(iter(found))[1])["partition"]}

    def expect(self, path: str, said: object, found: object) -> None:
        is_near = isinstance(said, float) and isinstance(found, float) and abs(said - found) <= 1e-9 * abs(said)
        if said != found and not is_near:
            self.wrong.append(f"{path}: {said}, on the page {found}")

    def line(self, path: str, node: Node, labels: dict[str, str]) -> None:
        said = node.read()
        if not isinstance(said, str):
            return
        place, text = self.table.get(path), said.split(" [")[0]
        if place is None:
            self.wrong.append(f"{path}: {said} has no place in {TABLE.name}")
            return
        self.counts["left out" if place.how == "out" else "on the page"] += 1
        series = self.page.of(place.family, **labels, **place.labels)
        if place.how == "count":
            self.expect(path, number(text), float(len(self.page.of(place.family))))
        elif place.how == "since":
            self.expect(path, 1, len(series))
        elif place.how == "sum":
            self.sums[place.text] += number(text)
        elif place.how in ("value", "usec", "offset"):
            self.expect(path, self.number_of(place.how, text, labels), next(iter(series.values()), None) if len(series) < 2 else series)
        elif place.how != "out":
            self.word(path, place, text, {dict(key[1]).get(place.label) for key, value in series.items() if value == 1})

    def number_of(self, how: str, text: str, labels: dict[str, str]) -> float:
        core = [self.page.one(f"gpu_temperature_{name}", **labels, sensor="core") or 0 for name in ("celsius", "margin_celsius")]
        return sum(core) - number(text) if how == "offset" else number(text) * (1e-6 if how == "usec" else 1)

    def word(self, path: str, place: Place, text: str, found: set[str | None]) -> None:
        if re.fullmatch("[0-]*-[0-]*", text):  # a UUID of zeros is none
            self.expect(path, {None}, found)
        elif place.how == "part":
            part = f"{int(text, 16):02x}"
            self.expect(path, [True], [part in str(one) for one in found])
        else:
            word = text.split()[0] if place.how == "word" else f"{number(text):.0f}" if place.how == "flag" else text
            self.expect(path, {written(word)}, {written(str(one)) for one in found})
