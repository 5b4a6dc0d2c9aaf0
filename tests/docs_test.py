#!/usr/bin/env python3
"""The generated pages say what the code says: compares them with what the binary prints now."""
import difflib
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BINARY = os.environ.get("GPUMETER_BINARY", str(ROOT / "build/release/gpumeter"))
PAGES = {"docs/metrics.md": "--print-metrics=markdown", "docs/configuration.md": "--print-config=markdown"}


def main() -> int:
    stale = 0
    for page, flag in PAGES.items():
        written = (ROOT / page).read_text() if (ROOT / page).exists() else ""
        printed = subprocess.run([BINARY, flag], capture_output=True, text=True, check=True, timeout=30).stdout
        if written == printed and printed:
            continue
        stale += 1
        print(f"{page} is out of date: write it anew with ./dev docs")
        diff = difflib.unified_diff(written.splitlines(), printed.splitlines(), page, f"gpumeter {flag}", lineterm="")
        print("\n".join(list(diff)[:40]))
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
