#!/usr/bin/env python3
"""Draws docs/house.svg: the folders of the product in the order of their includes, and three walks through them.

A box is a folder that tests/layers_test.py has a rule for; its row is the longest chain of includes below it, and a line leads to
what it includes, unless another way leads there too. `./dev docs` writes the picture; the test `docs_up_to_date` draws it again.
"""
import re
import sys
from collections import defaultdict
from functools import cache
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
from layers_test import MAY_INCLUDE  # noqa: E402

TOPS = ("base", "collectors", "exporter", "config", "systemd", "daemon", "programs")
COLOURS = {"base": "#e8e8e8", "collectors": "#dcebd3", "exporter": "#d6e4f2", "config": "#f3e6cf", "systemd": "#f3e6cf",
           "daemon": "#f2d7d5", "programs": "#e6dcf0"}
WALKS = {  # the folders that a value passes, in order; neighbours must include one another, directly or not
    "a power value": ("#c0392b", ["collectors/amd", "collectors/table", "daemon", "exporter/store", "exporter/text", "exporter/http"]),
    "a job's datagram": ("#1f6fb2", ["collectors/jobs", "exporter/store", "exporter/text", "exporter/http"]),
    "a configuration value": ("#2e8b57", ["config", "base", "collectors/host"]),
}
WIDTH, BOX, HEIGHT, ROW, GAP = 1240, 142, 40, 92, 12


def folder_of(path: str) -> str:
    """The folder with a rule of its own, or the vendor's, that holds the file."""
    parts = path.split("/")[:-1]
    for length in range(len(parts), 0, -1):
        name = "/".join(parts[:length])
        if name in MAY_INCLUDE:
            return name if name != "collectors" or length == len(parts) else "/".join(parts[:2])
    return "/".join(parts)


def read() -> tuple[dict[str, list[int]], dict[str, set[str]]]:
    """(files and lines of each folder, what each folder includes)"""
    sizes, includes = defaultdict(lambda: [0, 0]), defaultdict(set)
    for file in (f for top in TOPS for f in sorted((ROOT / top).rglob("*.[ch]pp"))):
        text, name = file.read_text(), folder_of(file.relative_to(ROOT).as_posix())
        sizes[name][0] += 1
        sizes[name][1] += text.count("\n")
        includes[name] |= {folder_of(target) for target in re.findall(r'^#include "([^"]+)"', text, re.M) if (ROOT / target).exists()} - {name}
    return dict(sizes), dict(includes)


def main() -> int:
    sizes, includes = read()

    @cache
    def below(name: str) -> frozenset[str]:
        return frozenset().union(*({child} | below(child) for child in includes.get(name, ())))

    @cache
    def rank(name: str) -> int:
        return 1 + max((rank(child) for child in includes.get(name, ())), default=-1)

    rows = defaultdict(list)
    for name in sizes:
        rows[rank(name)].append(name)
    per_row = (WIDTH + GAP) // (BOX + GAP)
    place, y = {}, 0
    for level in sorted(rows):  # from below; a box stands near the middle of what it includes
        middle = {name: sum(place[child][0] for child in includes.get(name, ())) / max(1, len(includes.get(name, ()))) for name in rows[level]}
        names = sorted(rows[level], key=lambda name: (middle[name], name))
        for start in range(0, len(names), per_row):
            line = names[start:start + per_row]
            left = (WIDTH - len(line) * (BOX + GAP) + GAP) / 2
            place |= {name: (left + i * (BOX + GAP), y) for i, name in enumerate(line)}
            y -= ROW
    place = {name: (x, top - y - ROW + 80) for name, (x, top) in place.items()}
    y = 80 - y - ROW + HEIGHT + 20
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" font-family="sans-serif" font-size="12">',
           f'<title>The folders of gpumeter, a box for each, above what they include</title><rect width="{WIDTH}" height="{y}" fill="white"/>']
    for name, (x, top) in place.items():
        direct = includes.get(name, set())
        for child in sorted(direct - frozenset().union(*(below(other) for other in direct))):
            at, under = place[child]
            out.append(f'<path d="M{x + BOX / 2:.0f} {top + HEIGHT}L{at + BOX / 2:.0f} {under}" stroke="#bbb" fill="none"/>')
    for name, (x, top) in place.items():
        files, lines = sizes[name]
        out.append(f'<rect x="{x:.0f}" y="{top}" width="{BOX}" height="{HEIGHT}" rx="4" fill="{COLOURS[name.split("/")[0]]}" stroke="#888"/>'
                   f'<text x="{x + BOX / 2:.0f}" y="{top + 17}" text-anchor="middle">{escape(name)}</text>'
                   f'<text x="{x + BOX / 2:.0f}" y="{top + 32}" text-anchor="middle" fill="#666" font-size="10">{files} files, {lines / 1000:.1f} k lines</text>')
    for number, (title, (colour, steps)) in enumerate(WALKS.items()):
        for one, other in zip(steps, steps[1:]):
            if other not in below(one) and one not in below(other) and not below(one) & below(other):
                print(f"docs/house.py: {title} cannot walk from {one} to {other}: neither includes the other", file=sys.stderr)
                return 1
        points = [(place[name][0] + 12 + 18 * number, place[name][1]) for name in steps]
        out.append(f'<polyline points="{" ".join(f"{x:.0f},{at:.0f}" for x, at in points)}" fill="none" stroke="{colour}" stroke-width="2.5" opacity="0.75"/>')
        out += [f'<circle cx="{x:.0f}" cy="{at:.0f}" r="7" fill="{colour}"/><text x="{x:.0f}" y="{at + 3:.0f}" fill="white" font-size="9" '
                f'text-anchor="middle">{step}</text>' for step, (x, at) in enumerate(points, 1)]
        out.append(f'<rect x="{20 + 240 * number}" y="20" width="24" height="6" fill="{colour}"/><text x="{52 + 240 * number}" y="27">the walk of {escape(title)}</text>')
    print("\n".join([*out, "</svg>"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
