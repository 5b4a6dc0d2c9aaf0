#!/usr/bin/env python3
"""The Debian package in a separately booted systemd: installed, reloaded, hung, stopped, upgraded, purged.

$GPUMETER_DEB: the package; else the one that `./dev package` built. $GPUMETER_ATTACK_SECONDS: how long a user attacks its port (15).
$GPUMETER_DEB_BEFORE: the package of the version before, from which is upgraded; else the same package with a lower version.
"""
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from booted import ROOT, missing, run_inside, skip  # noqa: E402

PROGRAMS = {"dpkg-deb": "dpkg", "apt-get": "apt"}


def packages() -> list[Path]:
    named = os.environ.get("GPUMETER_DEB")
    return [Path(named).resolve()] if named else sorted((ROOT / "build").glob("gpumeter_*.deb"))


def main() -> int:
    if reason := missing(PROGRAMS):
        return skip(reason)
    if len(packages()) != 1:
        return skip(f"one package is needed in build (./dev package), there are {len(packages())}")
    package, = packages()
    attack = os.environ.get("GPUMETER_ATTACK_SECONDS", "15")
    before = [Path(name).resolve() for name in os.environ.get("GPUMETER_DEB_BEFORE", "").split()]
    return run_inside(HERE / "booted_machine.py", [str(package), attack, *map(str, before)], [path.parent for path in (package, *before)],
                      seconds=400 + int(attack))


if __name__ == "__main__":
    sys.exit(main())
