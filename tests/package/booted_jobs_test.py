#!/usr/bin/env python3
"""Jobs in a separately booted systemd: two units and a login session train on simulated GPUs.

$GPUMETER_DEB: the package; else the one that `./dev package` built.
"""
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from booted import missing, run_inside, skip  # noqa: E402
from booted_test import PROGRAMS, packages  # noqa: E402


def main() -> int:
    if reason := missing({**PROGRAMS, "loginctl": "systemd"}):
        return skip(reason)
    if not list(Path("/usr/lib").glob("*/security/pam_systemd.so")) + list(Path("/lib").glob("*/security/pam_systemd.so")):
        return skip("not installed: libpam-systemd")
    if len(packages()) != 1:
        return skip(f"one package is needed in build (./dev package), there are {len(packages())}")
    package, = packages()
    return run_inside(HERE / "booted_jobs_machine.py", [str(package)], [package.parent], seconds=300)


if __name__ == "__main__":
    sys.exit(main())
