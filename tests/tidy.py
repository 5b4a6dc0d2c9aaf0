#!/usr/bin/env python3
"""clang-tidy over the product's own files, in parallel, each group of files checked once per content.

usage: tidy.py BUILD_FOLDER [JOBS [COMMIT]]        (BUILD_FOLDER holds clang's compile_commands.json)

clang-tidy reads the headers of the libraries for each file again, which is most of its time: files of a library that do not disturb
each other (batches.py) are checked as one. A group that passed is remembered by the content of everything of the project it
includes, of .clang-tidy and of clang-tidy's version, in build/tidy-cache; it is not read again until one of these changes.
With a COMMIT, only the files that changed since, and the sources of headers that did.
"""
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "packaging"))
from batches import File, batches  # noqa: E402

CACHE = ROOT / "build" / "tidy-cache"
FOLDERS = ("base", "collectors", "config", "daemon", "exporter", "programs", "systemd")
OWN = f"{ROOT}/({'|'.join(FOLDERS)})/"
LARGEST = 12  # files of a group
TIDY = os.environ.get("CLANG_TIDY", "clang-tidy-16")
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)


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


def flags(entry: dict) -> tuple[str, ...]:
    """The compiler's arguments without the file and its object: the same for all files of a library."""
    words = shlex.split(entry["command"])
    words = words[next(i for i, word in enumerate(words) if word.startswith("-")):]
    return tuple(word for i, word in enumerate(words)
                 if word not in ("-o", "-c", entry["file"]) and (i == 0 or words[i - 1] != "-o"))


class Group:
    """Files of one library, and a file that includes their headers, then the files. A name of one may hide another's there, and a name of a
    header may be ambiguous, so that a group with findings is read again, file by file."""

    def __init__(self, arguments: tuple[str, ...], batch: list[File], folder: Path, salt: bytes) -> None:
        self._arguments = arguments
        self._parts = [Group(arguments, [file], folder, salt) for file in batch] if len(batch) > 1 else []
        files = [str(file.path) for file in batch]
        lines = dict.fromkeys(line for file in batch for line in file.includes) if len(batch) > 1 else {}
        self._content = "".join(f"{line}  // NOLINT\n" for line in [*lines, *(f'#include "{file}"' for file in files)])
        digest = hashlib.sha256(salt + repr((arguments, files)).encode())
        for path in sorted(frozenset().union(*(headers(Path(file)) | {Path(file)} for file in files))):
            digest.update(path.read_bytes())
        self._passed = CACHE / digest.hexdigest()
        self._whole = folder / f"{self._passed.name[:16]}.cpp"

    def findings(self) -> str:
        if self._passed.exists():
            return ""
        self._whole.write_text(self._content)
        said = subprocess.run([TIDY, "--quiet", f"--config-file={ROOT}/.clang-tidy", f"--header-filter={OWN}", str(self._whole), "--",
                               *self._arguments, "-Wno-shadow"], capture_output=True, text=True)
        if said.returncode == 0:
            found = ""
        elif self._parts:
            found = "\n".join(filter(None, map(Group.findings, self._parts)))
        else:
            found = said.stdout or said.stderr or f"{TIDY}: exit {said.returncode}"
        if not found:
            self._passed.touch()
        return found


def groups(entries: list[dict], folder: Path, salt: bytes) -> list[Group]:
    libraries = defaultdict(list)
    for entry in entries:
        is_main = entry["file"].endswith("/main.cpp")
        libraries[flags(entry), entry["file"] if is_main else ""].append(entry["file"])
    return [Group(arguments, batch, folder, salt) for (arguments, _), files in libraries.items() for batch in batches(files, LARGEST, renames=False)]


def changed_since(commit: str) -> set[Path]:
    """The changed files without their endings. A commit that is not there, as in a shallow clone, changed everything."""
    listed = subprocess.run(["git", "-C", ROOT, "diff", "--name-only", commit], capture_output=True, text=True)
    if listed.returncode != 0:
        return {Path(entry).with_suffix("") for entry in subprocess.check_output(["git", "-C", ROOT, "ls-files"], text=True).splitlines()}
    return {Path(name).with_suffix("") for name in listed.stdout.splitlines()}


def main() -> int:
    build, jobs, *commit = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else os.cpu_count(), *sys.argv[3:]
    entries = [entry for entry in json.loads(Path(build, "compile_commands.json").read_text())
               if Path(entry["file"]).relative_to(ROOT).parts[0] in FOLDERS]
    version = subprocess.run([TIDY, "--version"], capture_output=True, check=True).stdout
    salt = version + (ROOT / ".clang-tidy").read_bytes()
    CACHE.mkdir(parents=True, exist_ok=True)
    folder = Path(build, "groups").absolute()
    folder.mkdir(exist_ok=True)
    chosen = entries
    if commit:
        changed = changed_since(commit[0])
        chosen = [entry for entry in entries if Path(entry["file"]).relative_to(ROOT).with_suffix("") in changed]
    checked = groups(chosen, folder, salt)
    with ThreadPoolExecutor(jobs) as pool:
        findings = list(filter(None, pool.map(Group.findings, checked)))
    print("\n".join(findings), end="")
    print(f"clang-tidy: {len(chosen)} of {len(entries)} files in {len(checked)} groups, {len(findings)} groups with findings")
    return 1 if findings or not entries else 0


if __name__ == "__main__":
    sys.exit(main())
