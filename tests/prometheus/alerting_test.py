#!/usr/bin/env python3
"""From a hot GPU to Alertmanager: boots a separate systemd and runs alerting_machine.py in it.

$GPUMETER_DEB: a package to install there; without it the built binary runs as a transient unit.
"""
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from booted import ROOT, missing, run_inside, skip  # noqa: E402

BINARY = os.environ.get("GPUMETER_BINARY", str(ROOT / "build/release/gpumeter"))
SERVICE = Path(os.environ.get("GPUMETER_DEB") or BINARY).resolve()
PROGRAMS = {"prometheus": "prometheus", "prometheus-alertmanager": "prometheus-alertmanager"}


def main() -> int:
    if reason := missing(PROGRAMS):
        return skip(reason)
    return run_inside(HERE / "alerting_machine.py", [str(SERVICE)], [SERVICE.parent], seconds=150)


if __name__ == "__main__":
    sys.exit(main())
