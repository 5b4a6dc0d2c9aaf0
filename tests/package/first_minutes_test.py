#!/usr/bin/env python3
"""The README's first ten minutes in a separately booted Debian: from the package to an alert on thermal throttling.

$GPUMETER_DEB: the package; else the one that `./dev package` built.
"""
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
from booted import missing, run_inside, skip  # noqa: E402
from booted_test import packages  # noqa: E402

PROGRAMS = {"dpkg-deb": "dpkg", "apt-get": "apt", "prometheus": "prometheus", "prometheus-alertmanager": "prometheus-alertmanager"}


def main() -> int:
    if reason := missing(PROGRAMS):
        return skip(reason)
    if len(packages()) != 1:
        return skip(f"one package is needed in build (./dev package), there are {len(packages())}")
    package, = packages()
    return run_inside(HERE / "first_minutes_machine.py", [str(package)], [package.parent], seconds=560)


if __name__ == "__main__":
    sys.exit(main())
