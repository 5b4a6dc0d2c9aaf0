"""Identifiers of vendors' interfaces: those that gpumeter uses, found in its sources, and those that it refuses (refused.txt).

An interface is a dict of identifiers and their numbers, None if unknown. `unaccounted()` lists those that are neither used nor
refused: a new header, binding or kernel has something to look at.
"""
import fnmatch
import re
from pathlib import Path

import abi_numbers
import abi_prototypes
from abi_test import candidates, our_constants, without_comments

ROOT = Path(__file__).resolve().parents[2]
Interface = dict[str, int | None]
VALUES = ("NVML_FI_", "NVML_GPM_METRIC_")


def sources(folder: str) -> str:
    return "\n".join(path.read_text() for path in sorted((ROOT / folder).rglob("*.[ch]pp")))


# Interfaces.

def number_of(text: str) -> int | None:
    found = re.fullmatch(r"\(?\s*(0x[0-9a-fA-F]+|\d+)(?:[uU]|[lL])*\s*\)?", text.strip())
    return int(found[1], 0) if found else None


def of_header(text: str) -> Interface:
    """Of an nvml.h: functions, and constants of #define and enum. Versions of structs and former names are no interface of their own."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)
    found: Interface = {name: None for name in re.findall(r"\bDECLDIR\s+(?:char\s*\*\s*)?(nvml\w+)\s*\(", text)}
    for name, value in re.findall(r"^[ \t]*#define[ \t]+(NVML_\w+|nvml\w+)[ \t]+([^\n]+)", text, re.M):
        is_number = number_of(value) is not None
        if is_number or (name.startswith("NVML_") and not re.search(r"STRUCT_VERSION|^\s*nvml", value)) or name.startswith("nvmlClocks"):
            found[name] = number_of(value)
    for body in re.findall(r"\benum\b[^{;]*\{(.*?)\}", text, re.S):
        for entry in body.split(","):
            parts = re.match(r"\s*(NVML_\w+|nvml\w+)\s*(?:=\s*(.+?))?\s*$", entry, re.S)
            if parts:
                found[parts[1]] = number_of(parts[2] or "")
    return found


def of_binding(text: str) -> Interface:
    """Of nvidia-ml-py's pynvml.py: what it calls in the library, and its constants."""
    found: Interface = {name: None for name in re.findall(r'_nvmlGetFunctionPointer\("(nvml\w+)"\)', text)}
    return found | {name: number_of(value) for name, value in re.findall(r"^(NVML_\w+|nvml(?:Event|Clocks|System)\w+)\s*=\s*([^#\n]+)", text, re.M)
                    if not name.startswith("NVML_STRUCT")}


def of_table(path: Path) -> Interface:
    """A list of names, with a number or other columns behind them."""
    rows = [line.split("\t") for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return {row[0]: number_of(row[1]) if len(row) > 1 else None for row in rows}


def of_gpu_metrics(path: Path) -> Interface:
    """Fields of all versions of amdgpu's struct gpu_metrics."""
    rows = [line.split("\t") for line in path.read_text().splitlines()]
    return {row[1]: None for row in rows if row[0].startswith("gpu_metrics_v") and row[1] not in ("TOTAL", "common_header")}


# Uses.

def used_of_nvml(interface: Interface) -> set[str]:
    """Functions of abi.hpp; constants by their names in the sources, by abi_test.py's names of ours, and by the numbers of fields and metrics."""
    text = without_comments(sources("collectors/nvidia"))
    words = set(re.findall(r"\bNVML_\w+", text)) | set(abi_prototypes.functions())
    constants = (ROOT / "collectors/nvidia/nvml/constants.hpp").read_text()
    for enum, name, comment in our_constants(constants):
        words.update(next(([word] for word in candidates(enum, name, comment) if word in interface), []))
    words.update(name for found in abi_numbers.numbers(with_fake=False).values() for _, name, _ in found)
    adjacent = re.findall(r'gpm_mean\("[^"]*", (\d+), (\d+)\)', text)
    metrics = {str(int(first) + place) for first, count in adjacent for place in range(int(count))}
    words.update(name for name, number in interface.items() if name.startswith("NVML_GPM_METRIC_") and str(number) in metrics)
    return words


def used_of_gpu_metrics() -> set[str]:
    """Fields that a row reads. The layouts name all fields, because they compute the places."""
    layouts = {"gpu_metrics_layout.cpp", "gpu_metrics.hpp"}
    texts = [path.read_text() for path in (ROOT / "collectors/amd").glob("*.[ch]pp") if path.name not in layouts]
    return set(re.findall(r"\w+", "\n".join(texts)))


def used_of_hwmon(interface: Interface) -> set[str]:
    """A source names a file by its number or by its channel's label: "hwmon/fan1_input", "hwmon/power{card}_max"."""
    named = re.findall(r"\bhwmon/([a-z]+)(\d+|\{[^}]*\})(_\w+)?", sources("collectors/intel") + sources("collectors/files"))
    patterns = [kind + (place if place.isdigit() else "[0-9]*") + (end or "_*") for kind, place, end in named]
    return {name for name in interface for pattern in patterns if fnmatch.fnmatch(name, pattern)}


# The ledger.

def refused(section: str) -> dict[str, str]:
    """Pattern -> reason. A reason stands above its patterns, which are indented; "[section]" begins an interface."""
    found, here, reason = {}, "", ""
    for line in (Path(__file__).resolve().parent / "refused.txt").read_text().splitlines():
        if line.startswith("["):
            here = line.strip("[]")
        elif line.startswith(" ") and here == section:
            found.update({pattern: reason for pattern in line.split()})
        elif line and not line.startswith("#"):
            reason = line
    return found


def unaccounted(interface: Interface, used: set[str], section: str) -> list[str]:
    """A field or a metric is refused by a pattern for fields or metrics only."""
    patterns = refused(section)
    of_all = re.compile("|".join(fnmatch.translate(pattern) for pattern in patterns) or "(?!)")
    of_values = re.compile("|".join(fnmatch.translate(pattern) for pattern in patterns if pattern.startswith(VALUES)) or "(?!)")
    return sorted(name for name in interface
                  if name not in used and not (of_values if name.startswith(VALUES) else of_all).fullmatch(name))


def stale(interface: Interface, section: str) -> list[str]:
    """Patterns that stand for nothing."""
    return [pattern for pattern in refused(section) if not fnmatch.filter(interface, pattern)]
