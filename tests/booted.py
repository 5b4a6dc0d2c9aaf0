"""Runs a Python program as root inside a separately booted systemd, in a throw-away copy of this machine.

$GPUMETER_BOOT: what boots a systemd and runs a script inside (default ../shared/tools/in-booted-systemd).
"""
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BOOT = Path(os.environ.get("GPUMETER_BOOT", ROOT.parent / "shared/tools/in-booted-systemd"))
SKIPPED = 77  # as ctest has it
# systemd enforces rules of devices and addresses by BPF programs, for which the container has to have the unified cgroups,
# and no filter of system calls around it.
NSPAWN = {"SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1", "SYSTEMD_SECCOMP": "0"}

# The copy has what gpumeter left on this machine: its devices of another life would be reported as lost.
CLEAN = """
systemctl stop gpumeter.socket gpumeter-jobs.socket gpumeter.service
dpkg --purge gpumeter
rm -rf /etc/gpumeter /etc/systemd/system/gpumeter* /etc/systemd/system/*/gpumeter* /run/gpumeter /var/lib/gpumeter \
  /var/lib/private/gpumeter /var/lib/systemd/deb-systemd-helper-*/gpumeter*
userdel gpumeter
systemctl daemon-reload
"""


def missing(programs: dict[str, str]) -> str:
    """Why no such test can run here; empty where it can. `programs`: what the inside needs -> its package."""
    if os.geteuid() != 0:
        return "booting a systemd needs root"
    if not BOOT.exists():
        return f"{BOOT} is not here"
    needed = {"systemd-nspawn": "systemd-container", **programs}
    absent = [package for program, package in needed.items() if not shutil.which(program)]
    return f"not installed: {' '.join(absent)}" if absent else ""


def skip(reason: str) -> int:
    print(f"skipped: {reason}")
    return SKIPPED


def run_inside(program: Path, arguments: list[str], folders: list[Path], seconds: int, cgroups: int = 2) -> int:
    """The exit status; what the program prints is printed. It sees the project and these folders, read-only, and its
    first word has to be `booted: `, by which a machine that lets no systemd be booted is known. `cgroups`: the version; 1 shows
    the machine only what is below the caller's cgroups."""
    environment = NSPAWN if cgroups == 2 else {"SYSTEMD_SECCOMP": "0"}
    command = [BOOT] if cgroups == 2 else ["unshare", "--cgroup", "bash", BOOT]
    with tempfile.TemporaryDirectory(prefix="gpumeter-booted-") as folder:
        script = Path(folder, "script")
        # The tool runs a script without arguments: they stand in it.
        script.write_text(f"{{{CLEAN}}} >/dev/null 2>&1\n" "exec /usr/bin/python3 -B " + shlex.join([str(program), *arguments]))
        said = subprocess.run([*command, script, ROOT, *folders], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              env={**os.environ, **environment, "BOOT_TIMEOUT": str(seconds)})
    print(said.stdout, end="")
    if "booted: " in said.stdout:
        return said.returncode
    sys.stdout.flush()
    return skip("this machine lets no systemd be booted; what was said is above")
