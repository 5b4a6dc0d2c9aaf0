#!/usr/bin/env python3
"""From a hot GPU to Alertmanager: boots a systemd of its own and runs alerting_machine.py in it.

$GPUMETER_DEB: a package to install there; without it the built binary runs as a transient unit.
$GPUMETER_BOOT: what boots a systemd and runs a script inside (default ../shared/tools/in-booted-systemd).
"""
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BOOT = Path(os.environ.get("GPUMETER_BOOT", ROOT.parent / "shared/tools/in-booted-systemd"))
BINARY = Path(os.environ.get("GPUMETER_BINARY", ROOT / "build/release/gpumeter")).resolve()
DEB = os.environ.get("GPUMETER_DEB", "")
PROGRAMS = {"systemd-nspawn": "systemd-container", "prometheus": "prometheus", "prometheus-alertmanager": "prometheus-alertmanager"}


def missing() -> str:
    """Why the test cannot run here; empty where it can."""
    if os.geteuid() != 0:
        return "booting a systemd needs root"
    if not BOOT.exists():
        return f"{BOOT} is not here"
    absent = [package for program, package in PROGRAMS.items() if not shutil.which(program)]
    return f"not installed: {' '.join(absent)}" if absent else ""


def boot() -> subprocess.CompletedProcess:
    with tempfile.TemporaryDirectory(prefix="gpumeter-alerting-") as folder:
        script = Path(folder, "script")
        service = Path(DEB).resolve() if DEB else BINARY
        # The tool runs a script without arguments: they stand in it.
        script.write_text("exec /usr/bin/python3 -B " + shlex.join([str(HERE / "alerting_machine.py"), str(service)]))
        return subprocess.run([BOOT, script, ROOT, service.parent], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              env={**os.environ, "BOOT_TIMEOUT": "150"})


def main() -> int:
    if reason := missing():
        print(f"skipped: {reason}")
        return 77
    said = boot()
    print(said.stdout, end="")
    if "booted: " not in said.stdout:
        print("skipped: this machine lets no systemd be booted; what was said is above")
        return 77
    return said.returncode


if __name__ == "__main__":
    sys.exit(main())
