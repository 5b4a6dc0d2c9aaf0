#!/usr/bin/env python3
"""The stripped binary."""
import os
import subprocess
import tempfile

from bench import BINARY, at_most, table


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        stripped = f"{folder}/gpumeter"
        subprocess.run(["strip", "-o", stripped, BINARY], check=True)
        size = os.path.getsize(stripped)
    table("size", [at_most("stripped binary", size / 1e6, 3, "MB", 2)])


if __name__ == "__main__":
    main()
