#!/usr/bin/env python3
"""Runs the unit tests near a change: those of the folders, in the product and in the tests, whose files differ from a commit.

usage: near.py UNIT_TESTS COMMIT
"""
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
UNIT = ROOT / "tests" / "unit"
SUITE = re.compile(r"^TEST(?:_F|_P)?\((\w+),", re.M)


def git(*words: str) -> list[str]:
    return subprocess.check_output(["git", "-C", ROOT, *words], text=True).splitlines()


def main() -> int:
    program, commit = sys.argv[1:]
    changed = [Path(name) for name in git("diff", "--name-only", commit) + git("ls-files", "--others", "--exclude-standard")]
    code = [path for path in changed if path.suffix in (".cpp", ".hpp")]
    folders = {UNIT / (path.parent.relative_to("tests/unit") if path.is_relative_to("tests/unit") else path.parent) for path in code}
    tests = sorted(test for folder in folders for test in folder.glob("*_test.cpp"))
    suites = sorted({suite for test in tests for suite in SUITE.findall(test.read_text())})
    if not suites:
        print(f"no unit test is near the {len(changed)} files that differ from {commit}")
        return 0
    print(f"{len(suites)} suites of {len(tests)} files, near {len(code)} files that differ from {commit}", flush=True)
    chosen = [program, "--gtest_brief=1", "--gtest_filter=" + ":".join(f"{suite}.*:*/{suite}.*" for suite in suites)]
    shards = os.cpu_count() or 1
    parts = [subprocess.Popen(chosen, env=os.environ | {"GTEST_TOTAL_SHARDS": str(shards), "GTEST_SHARD_INDEX": str(shard)}) for shard in range(shards)]
    return max([abs(part.wait()) for part in parts])


if __name__ == "__main__":
    sys.exit(main())
