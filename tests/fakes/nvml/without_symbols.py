#!/usr/bin/env python3
"""Copies a library and makes it lack functions: dlsym finds them no more. For a library older than the fake.

usage: without_symbols.py LIBRARY COPY NAME...
       without_symbols.py LIBRARY COPY --scenario FILE      (what FILE names under `missing:`)

A name loses its first letter in .dynstr, in place: the hash tables then lead nowhere.
"""
import struct
import sys
from pathlib import Path


def dynamic_strings(elf: bytes) -> tuple[int, int]:
    """Offset and size of .dynstr, of a 64-bit little-endian ELF file."""
    if elf[:6] != b"\x7fELF\x02\x01":
        raise ValueError("not a 64-bit little-endian ELF file")
    (table,) = struct.unpack_from("<Q", elf, 0x28)
    size, count, names = struct.unpack_from("<HHH", elf, 0x3A)
    sections = [struct.unpack_from("<IIQQQQ", elf, table + i * size) for i in range(count)]
    text = sections[names][4]
    for name, _, _, _, offset, length in sections:
        if elf[text + name:text + name + 8] == b".dynstr\0":
            return offset, length
    raise ValueError("no .dynstr")


def without(elf: bytes, names: list[str]) -> bytes:
    offset, length = dynamic_strings(elf)
    strings = bytearray(elf[offset:offset + length])
    for name in names:
        at = strings.find(b"\0" + name.encode() + b"\0")
        if at < 0:
            raise ValueError(f"the library has no {name}")
        strings[at + 1:at + 2] = b"x"
    return elf[:offset] + bytes(strings) + elf[offset + length:]


def missing(scenario: Path) -> list[str]:
    import yaml  # python3-yaml; not needed where the names are given
    file = yaml.safe_load(scenario.read_text())
    if "missing" in file:
        return file["missing"] or []
    return missing(scenario.parent / file["include"]) if "include" in file else []


def main() -> int:
    library, copy, *names = sys.argv[1:]
    if names and names[0] == "--scenario":
        names = missing(Path(names[1]))
    Path(copy).write_bytes(without(Path(library).read_bytes(), names))
    return 0


if __name__ == "__main__":
    sys.exit(main())
