#!/usr/bin/env python3
"""Groups of C++ files that a compiler can read as one, so that it reads the headers of each group once.

usage: batches.py SIZE FILE...        prints a group a line, at most SIZE names each, separated by commas

Two files are in different groups if one, or a header of its own, uses unqualified a name that the other declares for itself (in an
unnamed namespace, or static). The names are found by the project's formatting: such a declaration starts in the first column.
"""
import re
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COMMENT = re.compile(r"//.*")
TEXT = re.compile(r'R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"', re.S)
TYPE = re.compile(r"(?:struct|class|enum(?: class)?|union) (\w+)")
OTHER = re.compile(r"(\w+)\s*(?:\[[^\]]*\]\s*)*[({=;]")
WORD = re.compile(r"(?<![\w.>:])(?:[A-Za-z_]\w*)")
NAME = re.compile(r"(?<![\w.>:])(?:[A-Z]\w*|k[A-Z]\w*|[a-z_]\w*(?=\())")  # types, constants, functions
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)
NO_NAMES = re.compile(r"[\s}#\[]|template\b|namespace \w*::|TEST|INSTANTIATE|extern\b|using namespace")


def declared(line: str) -> str:
    """The name that a line declares, or nothing."""
    if NO_NAMES.match(line):
        return ""
    found = TYPE.match(line) or OTHER.search(line)
    return found[1] if found else ""


def own_names(text: str) -> set[str]:
    names, is_own = set(), False
    for line in text.splitlines():
        if line.startswith("namespace {"):
            is_own = True
        elif line == "}  // namespace":
            is_own = False
        elif is_own or line.startswith("static "):
            names.add(declared(line))
    return names - {""}


@cache
def words(path: Path, word: re.Pattern[str]) -> frozenset[str]:
    return frozenset(word.findall(COMMENT.sub("", TEXT.sub('""', path.read_text()))))


@cache
def included(path: Path) -> frozenset[Path]:
    """The project's headers that a file names. A name that no folder has belongs to a system's library."""
    found = (next((folder / name for folder in (ROOT, path.parent) if (folder / name).is_file()), None)
             for name in INCLUDE.findall(path.read_text()))
    return frozenset(header.resolve() for header in found if header)


def headers(path: Path) -> frozenset[Path]:
    """Also those that are included indirectly."""
    unread, known = included(path), frozenset()
    while unread:
        known |= unread
        unread = frozenset().union(*map(included, unread)) - known
    return known


class File:
    def __init__(self, path: str) -> None:
        self.path = path
        self.own = own_names(TEXT.sub('""', Path(path).read_text()))
        self.used, self.headers = words(Path(path), WORD), headers(Path(path).resolve())

    def is_disturbed_by(self, earlier: "File") -> bool:
        return not (earlier.own.isdisjoint(self.used) and
                    all(earlier.own.isdisjoint(words(header, NAME)) for header in self.headers - earlier.headers))

    def fits(self, other: "File") -> bool:
        return not (self.is_disturbed_by(other) or other.is_disturbed_by(self))


def batches(paths: list[str], size: int) -> list[list[str]]:
    """First fit, in the order of the names, so that neighbours share a group and its headers."""
    groups: list[list[File]] = []
    for file in map(File, sorted(paths)):
        room = (group for group in groups if len(group) < size and all(map(file.fits, group)))
        group = next(room, None)
        if group is None:
            groups.append(group := [])
        group.append(file)
    return [[file.path for file in group] for group in groups]


if __name__ == "__main__":
    for batch in batches(sys.argv[2:], int(sys.argv[1])):
        print(",".join(batch))
