#!/usr/bin/env python3
"""The stripped binary."""
import os
import subprocess
import tempfile

from bench import BINARY, table


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        stripped = f"{folder}/gpumeter"
        subprocess.run(["strip", "-o", stripped, BINARY], check=True)
        size = os.path.getsize(stripped)
    table("size", [("stripped binary", f"{size / 1e6:.2f} MB", "<= 3 MB")])


if __name__ == "__main__":
    main()
