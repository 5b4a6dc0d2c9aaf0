"""Lines, words and numbers of a file, and the error that names a line of it."""
from __future__ import annotations

import math
import re
from typing import List, Optional, Tuple

_NUMBER = re.compile(r"-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_BLANKS = " \t\r\n"
# The bar of box drawing separates the columns of some tables.
_SEPARATORS = re.compile("[ \t|,\u2502]+")
# The daemon's limit, with room for the largest scale of a unit.
_MOST = 1e17
MOST_GPUS = 1024
_MOST_OF_REASON = 240


class Refused(Exception):
    """The file is cut, or another program wrote it: "12: the reason", a line from 1. The program puts the file's name before it."""

    def __init__(self, line: int, reason: str) -> None:
        readable = re.sub(r"[\x00-\x1f\x7f-\x9f]", "\ufffd", reason)  # it may quote the file, and a terminal acts on control characters
        super().__init__(f"{line}: {readable[:_MOST_OF_REASON]}")


def lines_of(text: str) -> List[Tuple[int, str]]:
    """All lines with their numbers, without their ends. The text may neither be empty nor end within a line, as a file that was cut does."""
    if not text:
        raise Refused(1, "the file is empty")
    lines = text.split("\n")
    if lines.pop():
        raise Refused(len(lines) + 1, "the line has no end: the file is cut")
    return [(number, line[:-1] if line.endswith("\r") else line) for number, line in enumerate(lines, 1)]


def trimmed(text: str) -> str:
    return text.strip(_BLANKS)


def words_of(line: str) -> List[str]:
    """The words of a line, separated by blanks or by the bars and commas of tables."""
    return [word for word in _SEPARATORS.split(line) if word]


def after(line: str, mark: str) -> Optional[str]:
    """The trimmed part of the line after the mark; None if the line does not contain the mark."""
    _, found, rest = line.partition(mark)
    return trimmed(rest) if found else None


def measure(text: str) -> Optional[float]:
    """A finite number of 0 or more that the daemon accepts; None for any other text."""
    number = float(text) if _NUMBER.fullmatch(text) else math.nan
    return number if 0 <= number <= _MOST else None


def whole(text: str) -> Optional[int]:
    """A whole number in decimal digits of at most 32 bits; None for any other text."""
    return int(text) if re.fullmatch("[0-9]{1,10}", text) and int(text) < 1 << 32 else None


def leading_gpu(text: str) -> Optional[int]:
    """The number at the start of the text, if a machine may have so many GPUs."""
    found = re.match("[0-9]{1,9}", text)
    return int(found[0]) if found and int(found[0]) < MOST_GPUS else None
