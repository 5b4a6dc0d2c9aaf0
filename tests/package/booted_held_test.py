#!/usr/bin/env python3
"""Real device filters of systemd in a separately booted machine: the GPUs that Slurm jobs hold without a file and without a process.

Requires root and systemd-nspawn, and is skipped without them. Slurm itself is not needed: its control groups are folders.
"""
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import booted  # noqa: E402

BINARY = Path(os.environ.get("GPUMETER_BINARY", booted.ROOT / "build/release/gpumeter")).resolve()


def main() -> int:
    if reason := booted.missing({}):
        return booted.skip(reason)
    return booted.run_inside(HERE / "booted_held_machine.py", [str(BINARY)], [BINARY.parent], seconds=300)


if __name__ == "__main__":
    sys.exit(main())
