#!/usr/bin/env python3
"""Groups of C++ files that a compiler reads as one, so that it reads the headers of each group once.

usage: batches.py SIZE PREFIX FILE...        writes PREFIX_0.cpp, PREFIX_1.cpp, ..., each of at most SIZE files, and prints their names

A group includes all headers of its files, then each file, in which macros rename what the file declares for itself (in an unnamed namespace, or
static). A name that the file also uses qualified or as a member, or that its header has, keeps its spelling; files that this disturbs are in
different groups. The names are found by the project's formatting: such a declaration starts in the first column.
"""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COMMENT = re.compile(r"//.*")
TEXT = re.compile(r'R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"', re.S)
TYPE = re.compile(r"(?:struct|class|enum(?: class)?|union) (\w+)")
OTHER = re.compile(r"\b([A-Za-z_]\w*)\s*(?:\[[^\]]*\]\s*)*[({=;]")
NAME = re.compile(r"(?<![\w.>:])(?:[A-Z]\w*|k[A-Z]\w*|[a-z_]\w*(?=\())")  # types, constants, functions: a variable hides a function
QUALIFIED = re.compile(r"(?:\.|->|::)\s*~?([A-Za-z_]\w*)")
INCLUDED = re.compile(r"^#include .*$", re.M)
DEFINES = re.compile(r"^#define ", re.M)  # for the headers below it
NO_NAMES = re.compile(r"[\s}#\[/]|template\b|namespace \w*::|TEST|INSTANTIATE|static_assert|extern\b|using (?!\w+ =)")


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


class File:
    def __init__(self, path: str, renames: bool = True) -> None:
        self.path = Path(path).resolve()
        text = self.path.read_text()
        plain = TEXT.sub('""', text)
        own = own_names(plain)
        plain = COMMENT.sub("", plain)
        self.includes, self.is_alone = INCLUDED.findall(text), bool(DEFINES.search(text))
        header = self.path.with_suffix(".hpp")
        kept = set(QUALIFIED.findall(plain)) | set(NAME.findall(header.read_text() if header.exists() else ""))
        self.renamed, self.own = (sorted(own - kept), own & kept) if renames else ([], own)
        self.used = own | set(NAME.findall(plain))

    def fits(self, other: "File") -> bool:
        return not self.is_alone and not other.is_alone and self.own.isdisjoint(other.used) and other.own.isdisjoint(self.used)

    def text(self, number: int) -> str:
        """How a group includes the file. From the root, so that ccache knows the group in any folder."""
        names = [f"#define {name} {name}_{number}" for name in self.renamed]
        return "\n".join([*names, f'#include "{self.path.relative_to(ROOT)}"', *(f"#undef {name}" for name in self.renamed)])


def batches(paths: list[str], size: int, renames: bool = True) -> list[list[File]]:
    """First fit, in the order of the names, so that neighbours share a group and its headers."""
    groups: list[list[File]] = []
    for file in (File(path, renames) for path in sorted(paths)):
        room = (group for group in groups if len(group) < size and all(map(file.fits, group)))
        group = next(room, None)
        if group is None:
            groups.append(group := [])
        group.append(file)
    return groups


def text(group: list[File]) -> str:
    if len(group) == 1:
        return f'#include "{group[0].path.relative_to(ROOT)}"\n'
    includes = dict.fromkeys(line for file in group for line in file.includes)
    return "\n".join([*includes, *(file.text(number) for number, file in enumerate(group))]) + "\n"


def main() -> None:
    size, prefix, *paths = sys.argv[1:]
    for number, group in enumerate(batches(paths, int(size))):
        path = Path(f"{prefix}_{number}.cpp")
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text() != text(group):  # otherwise it is compiled again
            path.write_text(text(group))
        print(path)


if __name__ == "__main__":
    main()
