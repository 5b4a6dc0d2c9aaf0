#!/usr/bin/env python3
"""clang-tidy over the product's own files, in parallel, each file checked once per content.

usage: tidy.py BUILD_FOLDER [JOBS]        (BUILD_FOLDER holds clang's compile_commands.json)

A file that passed is remembered by the content of everything of the project it includes, of .clang-tidy and
of clang-tidy's version, in build/tidy-cache; it is not read again until one of these changes.
"""
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / "build" / "tidy-cache"
FOLDERS = ("base", "collectors", "config", "daemon", "exporter", "systemd")
TIDY = os.environ.get("CLANG_TIDY", "clang-tidy-16")


INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)


@cache
def included(path: Path, folders: tuple[Path, ...]) -> frozenset[Path]:
    """The project's headers that one file names. A name that no folder has belongs to a system's library."""
    found = (next((folder / name for folder in (path.parent, *folders) if (folder / name).is_file()), None)
             for name in INCLUDE.findall(path.read_text()))
    return frozenset(header.resolve() for header in found if header)


def dependencies(entry: dict) -> list[Path]:
    """The file and the project's headers that it includes, also indirectly. Reading them is much cheaper than the preprocessor."""
    folders = tuple(Path(word[2:]) for word in shlex.split(entry["command"]) if word.startswith("-I/"))
    open_files, known = {Path(entry["file"])}, set()
    while open_files:
        known |= open_files
        open_files = set().union(*(included(path, folders) for path in open_files)) - known
    return sorted(known)


def fingerprint(entry: dict, salt: bytes) -> str:
    digest = hashlib.sha256(salt + entry["command"].encode())
    for path in dependencies(entry):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def check(entry: dict, build: str, salt: bytes) -> tuple[str, str]:
    """('', '') if the file is clean, otherwise its path and clang-tidy's output."""
    passed = CACHE / fingerprint(entry, salt)
    if passed.exists():
        return "", ""
    said = subprocess.run([TIDY, "--quiet", "-p", build, entry["file"]], capture_output=True, text=True)
    if said.returncode == 0:
        passed.touch()
        return "", ""
    return entry["file"], said.stdout or said.stderr


def main() -> int:
    build, jobs = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else os.cpu_count()
    entries = [entry for entry in json.loads(Path(build, "compile_commands.json").read_text())
               if Path(entry["file"]).relative_to(ROOT).parts[0] in FOLDERS]
    version = subprocess.run([TIDY, "--version"], capture_output=True, check=True).stdout
    salt = version + (ROOT / ".clang-tidy").read_bytes()
    CACHE.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(jobs) as pool:
        results = list(pool.map(lambda entry: check(entry, build, salt), entries))
    findings = [said for path, said in results if path]
    print("\n".join(findings), end="")
    print(f"clang-tidy: {len(entries)} files, {len(findings)} with findings")
    return 1 if findings or not entries else 0


if __name__ == "__main__":
    sys.exit(main())
