#!/usr/bin/env python3
"""The measured house: lines of each file and function of the product, against the bars of CONTRIBUTING.md."""
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PRODUCT = ("base", "collectors", "exporter", "config", "systemd", "daemon", "programs")


def listed(*patterns: str) -> list[str]:
    out = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "--", *patterns],
                         cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [name for name in out.splitlines() if (ROOT / name).is_file()]


def lines(name: str) -> int:
    return len((ROOT / name).read_text().splitlines())


def code_lines(name: str) -> int:
    """Lines that are neither blank nor all comment."""
    text = (line.strip() for line in (ROOT / name).read_text().splitlines())
    return sum(1 for line in text if line and not line.startswith("//"))


def functions(names: list[str]) -> list[tuple[int, str]]:
    """(lines, "file:line name") of every function with a body, by universal-ctags."""
    tags = subprocess.run(["ctags", "-L", "-", "--languages=C++", "--kinds-C++=f", "--fields=+ne", "--sort=no", "-o", "-"],
                          cwd=ROOT, input="\n".join(names), capture_output=True, text=True, check=True).stdout
    found = []
    for row in tags.splitlines():
        name, path, *rest = row.split("\t")
        fields = dict(f.split(":", 1) for f in rest if f.startswith(("line:", "end:")))
        if "end" in fields:
            found.append((int(fields["end"]) - int(fields["line"]) + 1, f"{path}:{fields['line']} {name}"))
    return found


def spread(title: str, sizes: list[tuple[int, str]]) -> str:
    ordered = sorted(sizes)
    at = lambda share: ordered[min(len(ordered) - 1, int(share * len(ordered)))][0]
    longest = ordered[-1]
    return f"{title:<20} {len(ordered):>5}  median {at(0.5):>4}  p95 {at(0.95):>4}  longest {longest[0]:>4}  {longest[1]}"


def main() -> int:
    product = listed(*(f"{top}/*.{kind}" for top in PRODUCT for kind in ("cpp", "hpp", "in")))
    tests = listed("tests/*.cpp", "tests/*.hpp", "tests/*.py", "tests/bench/all")
    code = [name for name in product if not name.endswith(".in")]
    vendors = {name.split("/")[1] for name in code if name.startswith("collectors/") and name.endswith("/collector.cpp")}
    print(spread("product files", [(lines(n), n) for n in code]))
    print(spread("product functions", functions(code)))
    print(f"product lines {sum(map(lines, product))}, of which code {sum(map(code_lines, code))}; "
          f"test lines {sum(map(lines, tests))}")
    print("to add a metric: 1 line (a row of a table), and 1 in the catalogue where the family is new")
    for vendor in sorted(vendors):
        own = [n for n in code if n.startswith(f"collectors/{vendor}/")]
        print(f"collector {vendor}: {len(own)} files, {sum(map(lines, own))} lines; outside them 2 lines: builtin.cpp, CMakeLists.txt")
    return 0


if __name__ == "__main__":
    sys.exit(main())
