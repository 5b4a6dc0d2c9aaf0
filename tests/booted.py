"""Runs a Python program as root inside a separately booted systemd, in a throw-away copy of this machine.

$GPUMETER_BOOT: what boots a systemd and runs a script inside (default ../shared/tools/in-booted-systemd).
"""
import fcntl
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BOOT = Path(os.environ.get("GPUMETER_BOOT", ROOT.parent / "shared/tools/in-booted-systemd"))
SKIPPED = 77  # as ctest has it
CGROUPS = Path("/sys/fs/cgroup")
# systemd enforces rules of devices and addresses by BPF programs, for which the container has to have the unified cgroups,
# and no filter of system calls around it.
NSPAWN = {"SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1", "SYSTEMD_SECCOMP": "0"}

# The copy has what gpumeter left on this machine: its devices of another life would be reported as lost. Without the last file, an installation
# does not index all manuals of the machine again, which takes longer than the rest of it.
CLEAN = """
systemctl stop gpumeter.socket gpumeter-jobs.socket gpumeter.service
dpkg --purge gpumeter
rm -rf /etc/gpumeter /etc/systemd/system/gpumeter* /etc/systemd/system/*/gpumeter* /run/gpumeter /var/lib/gpumeter \
  /var/lib/private/gpumeter /var/lib/systemd/deb-systemd-helper-*/gpumeter*
userdel gpumeter
systemctl daemon-reload
rm -f /var/lib/man-db/auto-update
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


def of_systemd() -> list[Path]:
    """The folders of this process in the hierarchies that systemd-nspawn uses: systemd's own, if there is one, and the unified one."""
    paths = [line.split(":", 2)[1:] for line in Path("/proc/self/cgroup").read_text().splitlines()]
    unified = CGROUPS / "unified" if (CGROUPS / "unified").is_dir() else CGROUPS
    roots = {"name=systemd": CGROUPS / "systemd", "": unified}
    return [roots[name] / path.lstrip("/") for name, path in paths if name in roots]


@contextmanager
def own_groups(parents: Sequence[Path]) -> Iterator[None]:
    """This process and all that it starts are in groups of their own below these meanwhile, so that several machines can run at
    the same time: each has groups of the same names, and removes those that are empty at its end."""
    folders = [parent / f"gpumeter-test-{os.getpid()}" for parent in parents]
    try:
        for folder in folders:
            folder.mkdir()
            for name in ("cpuset.cpus", "cpuset.mems") if folder.parent.name == "cpuset" else ():
                (folder / name).write_text((folder.parent / name).read_text())
            (folder / "cgroup.procs").write_text(str(os.getpid()))
        yield
    finally:
        for folder in folders:
            with suppress(OSError):
                (folder.parent / "cgroup.procs").write_text(str(os.getpid()))
            for path, _, _ in os.walk(folder, topdown=False):
                with suppress(OSError):
                    os.rmdir(path)


def run_inside(program: Path, arguments: list[str], folders: list[Path], seconds: int, version_1: Sequence[Path] = ()) -> int:
    """The exit status; what the program prints is printed. It sees the project and these folders, read-only, and its
    first word has to be `booted: `, by which a machine that lets no systemd be booted is known. `version_1`: hierarchies of
    cgroup v1, in which the machine then sees its own groups alone. systemd-nspawn takes groups of the whole machine for it, so that
    one such machine runs at a time, also beside another suite."""
    environment = {"SYSTEMD_SECCOMP": "0"} if version_1 else NSPAWN
    command = ["unshare", "--cgroup", "bash", BOOT] if version_1 else [BOOT]
    with tempfile.TemporaryDirectory(prefix="gpumeter-booted-") as folder:
        script = Path(folder, "script")
        # The tool runs a script without arguments: they stand in it.
        script.write_text(f"{{{CLEAN}}} >/dev/null 2>&1\n" "exec /usr/bin/python3 -B " + shlex.join([str(program), *arguments]))
        try:
            with Path("/run/lock/gpumeter-test-machine").open("w") as lock, own_groups(version_1 or of_systemd()):
                if version_1:
                    fcntl.flock(lock, fcntl.LOCK_EX)
                said = subprocess.run([*command, script, ROOT, *folders], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                      env={**os.environ, **environment, "BOOT_TIMEOUT": str(seconds)})
        except OSError as error:
            return skip(f"no control groups can be made here: {error}")
    print(said.stdout, end="")
    if "booted: " in said.stdout:
        return said.returncode
    sys.stdout.flush()
    return skip("this machine lets no systemd be booted; what was said is above")
