"""The output of nvidia-smi, by GPU and field."""
from __future__ import annotations

import re
import shutil
import subprocess

Told = dict[str, "str | None"]  # by field; None: not reported


def run(*arguments: str) -> str:
    return subprocess.run(["nvidia-smi", *arguments], capture_output=True, text=True, timeout=60, check=True).stdout


def has_gpu() -> bool:
    if not shutil.which("nvidia-smi"):
        return False
    return subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=60).stdout.startswith("GPU ")


def parse_help(text: str) -> set[str]:
    """The fields of --help-query-gpu: lines of `"name"` or `"name" or "other name"`."""
    return {name for line in text.splitlines() if line.startswith('"') for name in re.findall(r'"([\w.]+)"', line)}


def plain(text: str) -> str | None:
    """[N/A], [Not Supported], [Requested functionality has been deprecated], ... are no values."""
    text = text.strip()
    return None if not text or text == "N/A" or text.startswith("[") else text


def parse(csv: str, fields: list[str]) -> dict[str, Told]:
    """Of `--format=csv,noheader,nounits`, by uuid, which has to be among the fields."""
    told: dict[str, Told] = {}
    for line in csv.splitlines():
        cells = line.split(", ")
        if len(cells) != len(fields):
            continue  # "No devices were found", or a message of the driver's
        row = {field: plain(cell) for field, cell in zip(fields, cells)}
        if row["uuid"]:
            told[row["uuid"]] = row
    return told


def query(fields: list[str]) -> dict[str, Told]:
    return parse(run("--query-gpu=" + ",".join(fields), "--format=csv,noheader,nounits"), fields)


def known(fields: list[str]) -> list[str]:
    """Those that this nvidia-smi has: it refuses a query with any other."""
    valid = parse_help(run("--help-query-gpu"))
    return [field for field in fields if field in valid]
