#!/usr/bin/env python3
"""Fills in a man page's scdoc source: page.py SOURCE VERSION CONFIGURATION_MD, to stdout.

@VERSION@ is the version, @KEYS@ the keys of docs/configuration.md. The binary generates that page; a test compares them.
"""
import re
import sys
from pathlib import Path


def cells(row: str) -> list[str]:
    """The cells of a row of a Markdown table; \\| is a bar within one."""
    return [cell.strip().replace("\\|", "|").strip("`") for cell in re.split(r"(?<!\\)\|", row)[1:-1]]


def literal(text: str) -> str:
    """The text with scdoc's markup escaped."""
    return re.sub(r"([_*\\`#~<])", r"\\\1", text)


def key_entry(row: str) -> str:
    key, kind, default, reload, meaning = cells(row)
    restart = "" if reload == "yes" else " Needs a restart."
    return f"*{literal(key)}*: {literal(kind)}\n\t{literal(meaning)}{restart} Default: {literal(default)}\n"


def keys(markdown: str) -> str:
    """A heading for each section and an entry for each row."""
    lines = [f"# {line[3:].upper()}\n" if line.startswith("## ") else key_entry(line)
             for line in markdown.splitlines() if line.startswith(("## ", "| `"))]
    return "\n".join(lines)


def main(source: str, version: str, configuration: str) -> None:
    page = Path(source).read_text()
    print(page.replace("@VERSION@", version).replace("@KEYS@", keys(Path(configuration).read_text())), end="")


if __name__ == "__main__":
    main(*sys.argv[1:])
